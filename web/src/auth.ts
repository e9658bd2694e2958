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

const KEPT = "remembrancer.refresh";
const FLOW = "remembrancer.flow";

let configuration: Configuration;
let access: { token: string; until: number } | null = null;

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
  const flow = sessionStorage.getItem(FLOW);
  const here = new URL(location.href);
  if (flow !== null && here.searchParams.has("state")) {
    sessionStorage.removeItem(FLOW);
    const { verifier, state, hash } = JSON.parse(flow) as { verifier: string; state: string; hash: string };
    history.replaceState(null, "", redirectUri() + hash);
    try {
      const parameters = oauth.validateAuthResponse(server(), client(), here, state);
      const reply = await oauth.authorizationCodeGrantRequest(
        server(), client(), oauth.None(), parameters, redirectUri(), verifier, options(),
      );
      keep(await oauth.processAuthorizationCodeResponse(server(), client(), reply));
    } catch {
      session.value = "signed-out";
      return;
    }
  } else if (sessionStorage.getItem(KEPT) !== null) {
    await renew();
    if (access === null) session.value = "signed-out";
  } else {
    session.value = "signed-out";
  }
}

export async function signIn(): Promise<void> {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  sessionStorage.setItem(FLOW, JSON.stringify({ verifier, state, hash: location.hash }));
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
  if (access === null || access.until - Date.now() < 30_000) await renew();
  return access?.token ?? null;
}

/** Ask for a new token; a refusal ends the session, a fault of the network does not. */
export async function renew(): Promise<void> {
  const refresh = sessionStorage.getItem(KEPT);
  access = null;
  if (refresh === null) {
    if (session.value === "signed-in") session.value = "expired";
    return;
  }
  const reply = await oauth.refreshTokenGrantRequest(server(), client(), oauth.None(), refresh, options());
  if (!reply.ok) {
    sessionStorage.removeItem(KEPT);
    session.value = session.value === "signed-in" ? "expired" : "signed-out";
    return;
  }
  keep(await oauth.processRefreshTokenResponse(server(), client(), reply));
}

function keep(answer: oauth.TokenEndpointResponse): void {
  access = { token: answer.access_token, until: Date.now() + (answer.expires_in ?? 60) * 1000 };
  if (answer.refresh_token !== undefined) sessionStorage.setItem(KEPT, answer.refresh_token);
  session.value = "signed-in";
}
