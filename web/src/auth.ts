/** Sign-in: authorization code with PKCE, tokens of this tab only. */

import * as oauth from "oauth4webapi";
import { signal } from "@preact/signals";

interface Configuration {
  api: string;
  client_id: string;
  issuer: string;
  sign_in: string;
}

export type Session = "starting" | "signed-out" | "signed-in" | "expired";

export const session = signal<Session>("starting");
/** Why the last sign-in did not succeed. */
export const refusal = signal<string | null>(null);

const KEPT = "remembrancer.refresh";
const FLOW = "remembrancer.flow";
const EARLY_MS = 30_000;

interface Flow {
  verifier: string;
  state: string;
  hash: string;
}

let configuration: Configuration;
let access: { token: string; until: number } | null = null;
let renewing: Promise<void> | null = null;

export function apiBase(): string {
  return configuration.api;
}

function server(): oauth.AuthorizationServer {
  return {
    issuer: configuration.issuer,
    authorization_endpoint: `${configuration.sign_in}/oauth2/authorize`,
    token_endpoint: `${configuration.sign_in}/oauth2/token`,
  };
}

function client(): oauth.Client {
  return { client_id: configuration.client_id };
}

/** Plain HTTP is for the local system alone. */
function options(): { [oauth.allowInsecureRequests]?: boolean } {
  return ["localhost", "127.0.0.1"].includes(location.hostname) ? { [oauth.allowInsecureRequests]: true } : {};
}

function redirectUri(): string {
  return `${location.origin}${location.pathname}`;
}

/** Read the configuration, finish a sign-in under way, or take up the tab's session. */
export async function start(): Promise<void> {
  configuration = (await (await fetch("config.json", { cache: "no-store" })).json()) as Configuration;
  const here = new URL(location.href);
  const flow = sessionStorage.getItem(FLOW);
  sessionStorage.removeItem(FLOW);
  if (here.searchParams.has("state")) {
    const kept = flow === null ? null : (JSON.parse(flow) as Flow);
    history.replaceState(null, "", redirectUri() + (kept?.hash ?? ""));
    if (kept !== null) return finish(kept, here);
  }
  if (sessionStorage.getItem(KEPT) === null) session.value = "signed-out";
  else await renew();
}

async function finish({ verifier, state }: Flow, here: URL): Promise<void> {
  try {
    const parameters = oauth.validateAuthResponse(server(), client(), here, state);
    const reply = await oauth.authorizationCodeGrantRequest(
      server(), client(), oauth.None(), parameters, redirectUri(), verifier, options(),
    );
    keep(await oauth.processAuthorizationCodeResponse(server(), client(), reply));
  } catch (error) {
    refusal.value =
      error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError
        ? `The sign-in was refused (${error.error}).`
        : "The sign-in did not succeed.";
    session.value = "signed-out";
  }
}

export async function signIn(): Promise<void> {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  sessionStorage.setItem(FLOW, JSON.stringify({ verifier, state, hash: location.hash } satisfies Flow));
  const url = new URL(server().authorization_endpoint as string);
  url.search = new URLSearchParams({
    response_type: "code",
    client_id: configuration.client_id,
    redirect_uri: redirectUri(),
    scope: "openid",
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  }).toString();
  location.assign(url);
}

export function signOut(): void {
  access = null;
  sessionStorage.removeItem(KEPT);
  const url = new URL(`${configuration.sign_in}/logout`);
  url.search = new URLSearchParams({ client_id: configuration.client_id, logout_uri: redirectUri() }).toString();
  location.assign(url);
}

/** A token good for the next half minute, or null when the session is over. */
export async function token(): Promise<string | null> {
  if (access === null || access.until - Date.now() < EARLY_MS) await renew();
  return access?.token ?? null;
}

/** Ask for a new token, once for all who wait. A refusal ends the session, a fault of the network does not. */
export function renew(): Promise<void> {
  renewing ??= renewed().finally(() => (renewing = null));
  return renewing;
}

async function renewed(): Promise<void> {
  const refresh = sessionStorage.getItem(KEPT);
  access = null;
  if (refresh === null) return end();
  const reply = await oauth.refreshTokenGrantRequest(server(), client(), oauth.None(), refresh, options());
  if (reply.status === 400 || reply.status === 401) {
    sessionStorage.removeItem(KEPT);
    return end();
  }
  keep(await oauth.processRefreshTokenResponse(server(), client(), reply));
}

function end(): void {
  session.value = session.value === "signed-in" || session.value === "expired" ? "expired" : "signed-out";
}

function keep(answer: oauth.TokenEndpointResponse): void {
  access = { token: answer.access_token, until: Date.now() + (answer.expires_in ?? 60) * 1000 };
  if (answer.refresh_token !== undefined) sessionStorage.setItem(KEPT, answer.refresh_token);
  refusal.value = null;
  session.value = "signed-in";
}
