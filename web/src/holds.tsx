/** Legal holds: placed by an admin, released by a signed request alone. */

import { useComputed, useSignal } from "@preact/signals";

import { call, idempotencyKey } from "./api";
import { say } from "./notice";
import { after, focusTitle, Pages } from "./parts";
import { Fault, useRequest } from "./request";
import type { SigningKey } from "./sign";
import { signedCall, signedFailure } from "./signed";
import { named, TargetFields, type Target } from "./target";
import { day } from "./time";
import type { LegalHold, Principal } from "./types";

const REASONS = ["litigation", "investigation", "regulator", "audit", "other"];
const ENDS = ["case_closed", "placed_in_error", "replaced", "other"];

async function holds(cursor: string | null) {
  const found = await call<{ legal_holds: LegalHold[]; next_cursor: string | null }>("GET", `/legal-holds?limit=20${after(cursor)}`);
  return { rows: found.legal_holds, next: found.next_cursor };
}

export function HoldsCard({ signing, people }: { signing: SigningKey | null; people: Principal[] }) {
  const placed = useSignal(0);
  return (
    <section class="card" aria-labelledby="holds-title">
      <h2 id="holds-title">Legal holds</h2>
      <p class="muted">What is held cannot be erased by anybody. Placing a hold needs no signature; releasing one does.</p>
      <Place placed={() => (placed.value += 1)} />
      <Pages load={holds} again={placed.value}>
        {(rows, reload) =>
          rows.length === 0 ? (
            <p class="muted">No hold was ever placed.</p>
          ) : (
            <ul class="rows" aria-label="Holds, newest first">
              {rows.map((hold) => <HoldRow key={hold.hold_id} hold={hold} signing={signing} people={people} reload={reload} />)}
            </ul>
          )
        }
      </Pages>
    </section>
  );
}

function Place({ placed }: { placed: () => void }) {
  const target = useSignal<Target>({ by: "memory_ids", text: "" });
  const reason = useSignal(REASONS[0] as string);
  const reference = useSignal("");
  const { busy, failed, run } = useRequest();
  const asked = useComputed(() => named(target.value)).value;
  const place = (event: Event) => {
    event.preventDefault();
    if (asked === null) return;
    run(async () => {
      const done = await call<{ memory_ids: string[]; not_found: string[] }>("POST", "/legal-holds", {
        body: { ...asked, reason: reason.value, case_reference: reference.value }, headers: idempotencyKey(),
      });
      target.value = { ...target.value, text: "" };
      reference.value = "";
      const missing = done.not_found.length === 0 ? "" : ` ${done.not_found.length} not found.`;
      say(missing ? "bad" : "good", `Held.${missing}`);
      placed();
    });
  };
  return (
    <form class="ask" onSubmit={place}>
      <TargetFields target={target} kinds={["memory_ids", "data_subject"]} />
      <div class="pair">
        <label>Reason
          <select value={reason.value} onChange={(e) => (reason.value = e.currentTarget.value)}>
            {REASONS.map((r) => <option key={r} value={r}>{r}</option>)}
          </select>
        </label>
        <label>Case number, no name
          <input value={reference.value} required pattern="[\x21-\x7e]{1,64}" maxLength={64} autocomplete="off" onInput={(e) => (reference.value = e.currentTarget.value)} />
        </label>
      </div>
      <Fault why={failed} />
      <div class="actions"><button type="submit" disabled={asked === null || busy}>Place the hold</button></div>
    </form>
  );
}

function HoldRow({ hold, signing, people, reload }: { hold: LegalHold; signing: SigningKey | null; people: Principal[]; reload: () => void }) {
  const reason = useSignal(ENDS[0] as string);
  const { busy, failed, run } = useRequest(signedFailure);
  const name = (id: string | null) => people.find((p) => p.principal_id === id)?.name ?? "somebody";
  const what =
    hold.of === "data_subject" ? "all of a data subject" : `${hold.memory_ids.length} ${hold.memory_ids.length === 1 ? "memory" : "memories"}`;
  const release = (event: Event) => {
    event.preventDefault();
    if (signing === null) return;
    run(async () => {
      await signedCall(signing, `/legal-holds/${hold.hold_id}/release`, { reason: reason.value });
      say("good", "Released: what it held can be erased now.");
      focusTitle();
      reload();
    });
  };
  return (
    <li>
      <p>
        <span class={`chip ${hold.released_at === null ? "warn" : ""}`}>{hold.released_at === null ? "standing" : "released"}</span>{" "}
        {hold.case_reference}: {what}, {hold.reason}
      </p>
      <p class="muted">
        Placed {day(hold.placed_at)} by {name(hold.placed_by)}.
        {hold.released_at !== null && ` Released ${day(hold.released_at)} by ${name(hold.released_by)}: ${hold.release_reason?.replaceAll("_", " ")}.`}
      </p>
      {hold.memory_ids.length > 0 && <details><summary>Memories</summary><ul class="plain id">{hold.memory_ids.map((id) => <li key={id}>{id}</li>)}</ul></details>}
      <Fault why={failed} />
      {hold.released_at === null && (
        <form class="actions" onSubmit={release}>
          <label class="grow">Released because
            <select value={reason.value} onChange={(e) => (reason.value = e.currentTarget.value)}>
              {ENDS.map((r) => <option key={r} value={r}>{r.replaceAll("_", " ")}</option>)}
            </select>
          </label>
          <button type="submit" class="danger" disabled={signing === null || busy}>Sign and release</button>
        </form>
      )}
    </li>
  );
}
