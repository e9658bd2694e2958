/** Erasure: signed, a dry run first. */

import { useComputed, useSignal } from "@preact/signals";

import { Confirm } from "./confirm";
import { focusTitle } from "./parts";
import { Fault, useRequest } from "./request";
import type { SigningKey } from "./sign";
import { signedCall, signedFailure } from "./signed";
import { named, TargetFields, type Target } from "./target";
import { Inline } from "./text";
import type { Principal, Purge, PurgeJob } from "./types";

const REASONS = ["data_subject_request", "poisoned", "secret", "unlawful", "retention", "other"];

export function PurgeCard({ signing, people }: { signing: SigningKey | null; people: Principal[] }) {
  const target = useSignal<Target>({ by: "memory_ids", text: "" });
  const reason = useSignal(REASONS[0] as string);
  const dry = useSignal<{ of: string; found: Purge } | null>(null);
  const done = useSignal<Purge | PurgeJob | null>(null);
  const { busy, failed, run } = useRequest(signedFailure);
  const asked = useComputed(() => named(target.value)).value;
  const request = { ...asked, reason: reason.value };
  const of = JSON.stringify(request);
  const look = () => {
    if (signing === null || asked === null) return;
    dry.value = done.value = null;
    run(async () => {
      dry.value = { of, found: await signedCall<Purge>(signing, "/purge", { ...request, dry_run: true }) };
    });
  };
  const erase = () => {
    if (signing === null) return;
    dry.value = null;
    run(async () => {
      done.value = await signedCall<Purge | PurgeJob>(signing, "/purge", { ...request, dry_run: false });
      target.value = { ...target.value, text: "" };
      focusTitle();
    });
  };
  // A dry run is of exactly what is named above it.
  const found = dry.value?.of === of ? dry.value.found : null;
  const ended = done.value;
  return (
    <section class="card" aria-labelledby="purge-title">
      <h2 id="purge-title">Erase memories</h2>
      <p class="muted">A dry run first: it counts what would go. Erasing cannot be undone.</p>
      <div class="ask">
        <TargetFields target={target} kinds={["memory_ids", "data_subject", "owner"]} people={people} />
        <label>Reason
          <select value={reason.value} onChange={(e) => (reason.value = e.currentTarget.value)}>
            {REASONS.map((r) => <option key={r} value={r}>{r.replaceAll("_", " ")}</option>)}
          </select>
        </label>
      </div>
      <div class="actions"><button type="button" disabled={signing === null || asked === null || busy} onClick={look}>Dry run</button></div>
      <Fault why={failed} />
      {found !== null && <Outcome purge={found} />}
      {found !== null && Object.values(found.counts).some((n) => n > 0) && <Confirm busy={busy} act={erase} />}
      {ended !== null && ("counts" in ended ? <Outcome purge={ended} /> : <Begun job={ended} />)}
    </section>
  );
}

function Begun({ job }: { job: PurgeJob }) {
  return (
    <div role="status" class="banner good">
      <p>{job.memories} memories and {job.proposals} proposals are being erased. They are out of recall when it is done.</p>
      <p class="id">{job.job_id}</p>
    </div>
  );
}

function Outcome({ purge }: { purge: Purge }) {
  const memories = `${purge.erased.length} ${purge.erased.length === 1 ? "memory" : "memories"}`;
  return (
    <div role="status" class={`banner ${purge.dry_run ? "" : "good"}`}>
      <p>{purge.dry_run ? "Would erase" : "Erased"} {memories}; {purge.held.length} on legal hold, {purge.not_found.length} not found.</p>
      <ul class="plain">
        {Object.entries(purge.counts).filter(([, n]) => n > 0).map(([table, n]) => <li key={table}>{n} × <Inline text={table.replaceAll("_", " ")} /></li>)}
      </ul>
      {purge.remains !== undefined && <p>{purge.remains}</p>}
    </div>
  );
}
