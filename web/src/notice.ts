/** The one message at the foot of the page. Bad news stay until they are read. */

import { signal } from "@preact/signals";

export interface Notice {
  tone: "info" | "good" | "bad";
  text: string;
}

export const notice = signal<Notice | null>(null);

export function say(tone: Notice["tone"], text: string): void {
  notice.value = { tone, text };
}
