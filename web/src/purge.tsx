/** Erasure: signed, a dry run first. */

import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { call } from "./api";
import { Confirm } from "./confirm";
import { focusTitle } from "./parts";
import { Fault, useRequest } from "./request";
import type { SigningKey } from "./sign";
import { signedCall, signedFailure } from "./signed";
import { named, TargetFields, type Target } from "./target";
import { Inline } from "./text";
import type { ErasureJob, Principal, Purge, PurgeJob } from "./types";

const REASONS = ["data_subject_request", "poisoned", "secret", "unlawful", "retention", "other"];
const AGAIN_MS = 2_000;

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

/** Followed until it is over; a look that fails is said and tried again. */
function Begun({ job }: { job: PurgeJob }) {
  const seen = useSignal<ErasureJob | null>(null);
  const { failed, run } = useRequest();
  const status = seen.value?.status ?? "working";
  useEffect(() => {
    if (status !== "working") return;
    const look = () => run(async () => { seen.value = await call<ErasureJob>("GET", `/jobs/${job.job_id}`); });
    look();
    const timer = window.setInterval(look, AGAIN_MS);
    return () => window.clearInterval(timer);
  }, [status]);
  const tone = { working: "", done: "good", failed: "bad" }[status];
  return (
    <div role="status" class={`banner ${tone}`}>
      <p>{progress(job, seen.value)}</p>
      {status === "working" && seen.value?.total && <progress aria-label="Erased so far" max={seen.value.total} value={seen.value.done} />}
      <p class="id">{job.job_id}</p>
      <Fault why={failed} />
    </div>
  );
}

function progress(job: PurgeJob, seen: ErasureJob | null): string {
  const asked = `${job.memories} memories and ${job.proposals} proposals`;
  if (seen === null || seen.status === "working") return `${asked} are being erased: ${seen?.done ?? 0} done. They are out of recall when it is over.`;
  const { erased, held } = seen.result ?? {};
  const outcome = `${erased?.memories ?? 0} memories and ${erased?.proposals ?? 0} proposals are erased, ${held?.total ?? 0} on legal hold.`;
  return seen.status === "done" ? outcome : `It stopped (${seen.failure?.replaceAll("_", " ")}): ${outcome}`;
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
