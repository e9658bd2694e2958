/** Calls of the API; every failure is an ApiProblem, an Offline or a SessionOver. */

import { signal } from "@preact/signals";

import { apiBase, renew, token } from "./auth";
import type { Problem } from "./types";

export const online = signal(navigator.onLine);
addEventListener("online", () => (online.value = true));
addEventListener("offline", () => (online.value = false));

export class ApiProblem extends Error {
  constructor(readonly problem: Problem) {
    super(problem.code);
  }
}

export class Offline extends Error {}
export class SessionOver extends Error {}

interface Options {
  body?: unknown;
  headers?: Record<string, string>;
  /** Sent even while the page is being left. */
  keepalive?: boolean;
}

export async function call<T>(method: "GET" | "POST", path: string, options: Options = {}): Promise<T> {
  const signed = options.headers?.["Signature"] !== undefined;
  let reply = await send(method, path, options, await bearer());
  // A signature that is refused is a 401 too, and its nonce is good for one attempt.
  if (reply.status === 401 && !signed) {
    await answered(renew);
    reply = await send(method, path, options, await bearer());
  }
  const answer = await content(reply);
  if (!reply.ok) throw new ApiProblem(answer as Problem);
  return answer as T;
}

/** The address that a signature covers. */
export function apiUrl(path: string): string {
  return new URL(apiBase() + path, location.href).href;
}

/** For what creates or decides: a repetition by the network is recognized. */
export function idempotencyKey(): Record<string, string> {
  return { "Idempotency-Key": crypto.randomUUID() };
}

async function bearer(): Promise<string> {
  const found = await answered(token);
  if (found === null) throw new SessionOver();
  return found;
}

async function send(method: string, path: string, options: Options, access: string): Promise<Response> {
  const { body } = options;
  const reply = await answered(() =>
    fetch(apiBase() + path, {
      method,
      headers: {
        Authorization: `Bearer ${access}`,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...options.headers,
      },
      cache: "no-store",
      keepalive: options.keepalive ?? false,
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    }),
  );
  online.value = true;
  return reply;
}

/** Whatever the act throws means that nobody answered. */
async function answered<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch {
    online.value = false;
    throw new Offline();
  }
}

async function content(reply: Response): Promise<unknown> {
  const text = await answered(() => reply.text());
  try {
    return JSON.parse(text);
  } catch {
    // Something between the page and the service answered in its place.
    throw new ApiProblem({
      title: `The answer could not be read (status ${reply.status}).`,
      status: reply.status, code: "unreadable", retryable: true, errors: [], correlation_id: "",
    });
  }
}

/** A failure in words for a person. */
export function inWords(error: unknown): string {
  if (error instanceof Offline) return "The service cannot be reached.";
  if (error instanceof SessionOver) return "Your session is over. Sign in again.";
  if (error instanceof ApiProblem) return problemInWords(error.problem);
  throw error;
}

function problemInWords(problem: Problem): string {
  const details = problem.errors.map((e) => `${e.pointer ? `${e.pointer}: ` : ""}${e.detail}`).join("; ");
  switch (problem.code) {
    case "already_decided":
      return `Already ${problem.outcome?.status ?? "decided"} by ${problem.outcome?.decided_by ?? "somebody else"}.`;
    case "digest_mismatch":
      return "The text changed since you read it.";
    case "stale_target":
      return "The memory that it would supersede has changed since.";
    case "expired":
      return "Its time is over: it has expired.";
    case "not_found":
      return "There is no such thing, or it is not yours to see.";
    default:
      return details ? `${problem.title} ${details}` : problem.title;
  }
}
