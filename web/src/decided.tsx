/** What was decided, by whom and why. */

import { useSignal } from "@preact/signals";

import { call } from "./api";
import { after, Empty, Pages } from "./parts";
import { Inline } from "./text";
import { when } from "./time";
import type { Proposal } from "./types";

const STATES = ["approved", "rejected", "expired"] as const;

export function DecidedTab() {
  const status = useSignal<(typeof STATES)[number]>("approved");
  const load = async (cursor: string | null) => {
    const found = await call<{ proposals: Proposal[]; next_cursor: string | null }>(
      "GET", `/proposals?status=${status.value}&limit=50${after(cursor)}`,
    );
    return { rows: found.proposals, next: found.next_cursor };
  };
  return (
    <>
      <div class="segments" role="group" aria-label="Which decisions">
        {STATES.map((s) => (
          <button key={s} type="button" aria-pressed={status.value === s} onClick={() => (status.value = s)}>{s}</button>
        ))}
      </div>
      <Pages load={load} again={status.value}>
        {(proposals) =>
          proposals.length === 0 ? (
            <Empty title={`Nothing was ${status.value}`}>What people decide, and what runs out of time, is kept here.</Empty>
          ) : (
            <ul class="cards">
              {proposals.map((p) => (
                <li key={p.proposal_id} class="card">
                  {p.title !== null && <h2 dir="auto"><Inline text={p.title} /></h2>}
                  <p class="stored" dir="auto"><Inline text={p.content} /></p>
                  <p class="muted">
                    {p.decided_by === null ? "expired" : <>{p.status} by <Inline text={p.decided_by} /></>}, {when(p.decided_at ?? p.expires_at)}
                    {p.decision?.reason && <> · reason: <Inline text={p.decision.reason} /></>}
                    {p.decision?.override_reason && <> · the screen was overridden: <Inline text={p.decision.override_reason} /></>}
                    {p.decision?.supersedes && <> · supersedes <span class="id">{p.decision.supersedes}</span></>}
                  </p>
                  <p><a href={`#/queue/${p.proposal_id}`}>Everything about it</a></p>
                </li>
              ))}
            </ul>
          )
        }
      </Pages>
    </>
  );
}
