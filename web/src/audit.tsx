/** The audit chain: its events, and whether it is whole. */

import { useSignal } from "@preact/signals";

import { call } from "./api";
import { after, Empty, Pages } from "./parts";
import { Fault, useRequest } from "./request";
import { Inline } from "./text";
import { when } from "./time";
import type { AuditEvent, Chain } from "./types";

async function events(cursor: string | null) {
  const found = await call<{ events: AuditEvent[]; next_cursor: string | null }>("GET", `/audit?limit=100${after(cursor)}`);
  return { rows: found.events, next: found.next_cursor };
}

export function AuditTab() {
  return (
    <>
      <Verification />
      <Pages load={events}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No event yet">Every act that changes something leaves a row here.</Empty>
          ) : (
            <div class="scroll" tabIndex={0} role="region" aria-label="Audit events, newest first">
              <table>
                <thead><tr><th scope="col">#</th><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">On</th></tr></thead>
                <tbody>
                  {rows.map((e) => (
                    <tr key={e.seq}>
                      <td>{e.seq}</td><td>{when(e.at)}</td><td><Inline text={e.actor_name ?? e.actor_kind} /></td>
                      <td>{e.action.replaceAll("_", " ")}</td><td class="id">{e.target ?? "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Pages>
    </>
  );
}

function Verification() {
  const chain = useSignal<Chain | null>(null);
  const { busy, failed, run } = useRequest();
  const verify = () => {
    chain.value = null;
    run(async () => { chain.value = await call<Chain>("GET", "/audit/verify"); });
  };
  const found = chain.value;
  return (
    <div class="verification">
      <button type="button" class="primary" disabled={busy} onClick={verify}>Verify the chain</button>
      <div role="status" class="grow">
        {busy && <p class="muted">Reading every event…</p>}
        {found?.ok === true && <p class="banner good"><span>Whole: {found.events} events, head <span class="id">{found.head.slice(0, 16)}…</span></span></p>}
        {found?.ok === false && (
          <div class="banner bad">
            <p>Broken. Tell the operator now.</p>
            <ul class="plain">{found.faults.map((f) => <li key={f.seq}>{f.kind.replaceAll("_", " ")} at {f.seq}{f.until !== null && f.until !== f.seq && ` to ${f.until}`}</li>)}</ul>
          </div>
        )}
        <Fault why={failed} />
      </div>
    </div>
  );
}
