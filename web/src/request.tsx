/** One request of a card: sent once at a time, and what goes wrong is said where it was asked. */

import { batch, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { call, idempotencyKey, inWords } from "./api";
import { say } from "./notice";
import { focusTitle } from "./parts";

export interface Request {
  busy: boolean;
  failed: string | null;
  run: (act: () => Promise<void>) => void;
}

export function useRequest(words: (error: unknown) => string = inWords): Request {
  const busy = useSignal(false);
  const failed = useSignal<string | null>(null);
  const run = async (act: () => Promise<void>) => {
    if (busy.value) return;
    batch(() => {
      busy.value = true;
      failed.value = null;
    });
    try {
      await act();
    } catch (error) {
      failed.value = words(error);
    } finally {
      busy.value = false;
    }
  };
  return { busy: busy.value, failed: failed.value, run: (act) => void run(act) };
}

export function Fault({ why }: { why: string | null }) {
  return why === null ? null : <p class="banner bad" role="alert">{why}</p>;
}

/** `path` and `body` are posted; `done` says so in words. */
type Settle = (path: string, body: object, done: string) => void;

/** A row of a tab that somebody settles: the answer takes it away, the keyboard goes to the top of the tab. */
export function SettleCard({
  reload, children, actions,
}: { reload: () => void; children: ComponentChildren; actions: (settle: Settle, busy: boolean) => ComponentChildren }) {
  const { busy, failed, run } = useRequest();
  const settle: Settle = (path, body, done) =>
    run(async () => {
      await call("POST", path, { body, headers: idempotencyKey() });
      say("good", done);
      focusTitle();
      reload();
    });
  return (
    <li class="card">
      {children}
      <Fault why={failed} />
      {actions(settle, busy)}
    </li>
  );
}
