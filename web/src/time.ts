/** Time on the page: one clock for all countdowns. */

import { signal } from "@preact/signals";

export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 1000);

export type Urgency = "normal" | "warn" | "critical" | "over";

export function urgency(until: string, warn: number, critical: number): Urgency {
  const left = (Date.parse(until) - now.value) / 1000;
  if (left <= 0) return "over";
  if (left < critical) return "critical";
  return left < warn ? "warn" : "normal";
}

/** `6 d 3 h`, `2 h 10 min`, `42:07`. */
export function left(until: string): string {
  const seconds = Math.floor((Date.parse(until) - now.value) / 1000);
  if (seconds <= 0) return "expired";
  const days = Math.floor(seconds / 86_400);
  const hours = Math.floor((seconds % 86_400) / 3_600);
  const minutes = Math.floor((seconds % 3_600) / 60);
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
}

export function when(at: string | null): string {
  return at === null
    ? "unknown"
    : new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

export function day(at: string | null): string {
  return at === null ? "unknown" : new Date(at).toLocaleDateString(undefined, { dateStyle: "medium" });
}
