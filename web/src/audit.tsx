/** The audit chain: its events, and whether it is whole. */

import { useSignal } from "@preact/signals";

import { call, inWords } from "./api";
import { after, Empty, Pages } from "./parts";
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
  const failed = useSignal<string | null>(null);
  const busy = useSignal(false);
  const verify = async () => {
    busy.value = true;
    chain.value = null;
    failed.value = null;
    try {
      chain.value = await call<Chain>("GET", "/audit/verify");
    } catch (error) {
      failed.value = inWords(error);
    } finally {
      busy.value = false;
    }
  };
  const found = chain.value;
  return (
    <div class="verification">
      <button type="button" class="primary" disabled={busy.value} onClick={() => void verify()}>Verify the chain</button>
      <div role="status" class="grow">
        {busy.value && <p class="muted">Reading every event…</p>}
        {found?.ok === true && <p class="banner good"><span>Whole: {found.events} events, head <span class="id">{found.head.slice(0, 16)}…</span></span></p>}
        {found?.ok === false && (
          <div class="banner bad">
            <p>Broken. Tell the operator now.</p>
            <ul class="plain">{found.faults.map((f) => <li key={f.seq}>{f.kind.replaceAll("_", " ")} at {f.seq}{f.until !== null && f.until !== f.seq && ` to ${f.until}`}</li>)}</ul>
          </div>
        )}
        {failed.value !== null && <p class="banner bad">{failed.value}</p>}
      </div>
    </div>
  );
}
