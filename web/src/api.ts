/** Calls of the API; every failure is an ApiProblem or an Offline. */

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
  let reply = await send(method, path, options);
  if (reply.status === 401 && !path.startsWith("/purge")) {
    await renew();
    reply = await send(method, path, options);
  }
  const answer: unknown = await reply.json();
  if (!reply.ok) throw new ApiProblem(answer as Problem);
  return answer as T;
}

async function send(method: string, path: string, options: Options): Promise<Response> {
  let bearer: string | null;
  let reply: Response;
  try {
    bearer = await token();
    if (bearer === null) throw new SessionOver();
    reply = await fetch(apiBase() + path, {
      method,
      headers: {
        Authorization: `Bearer ${bearer}`,
        ...(options.body === undefined ? {} : { "Content-Type": "application/json" }),
        ...options.headers,
      },
      cache: "no-store",
      keepalive: options.keepalive ?? false,
      ...(options.body === undefined
        ? {}
        : { body: typeof options.body === "string" ? options.body : JSON.stringify(options.body) }),
    });
  } catch (error) {
    if (error instanceof SessionOver) throw error;
    online.value = false;
    throw new Offline();
  }
  online.value = true;
  return reply;
}

/** A failure in words for a person. */
export function inWords(error: unknown): string {
  if (error instanceof Offline) return "The service cannot be reached. Nothing was changed.";
  if (error instanceof SessionOver) return "Your session is over. Sign in again; nothing was changed.";
  if (error instanceof ApiProblem) {
    const { problem } = error;
    const details = problem.errors.map((e) => `${e.pointer || "request"}: ${e.detail}`).join("; ");
    switch (problem.code) {
      case "already_decided":
        return `Already ${problem.outcome?.status ?? "decided"} by ${problem.outcome?.decided_by ?? "somebody else"}.`;
      case "digest_mismatch":
        return "The text changed since you read it.";
      case "expired":
        return "Its time is over: it has expired.";
      default:
        return details ? `${problem.title} ${details}` : problem.title;
    }
  }
  throw error;
}
