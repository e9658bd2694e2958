/** The queue tab: the list, the proposal in focus, the keyboard. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { approve, ask, type Asking } from "./actions";
import { undo } from "./decide";
import { Detail } from "./detail";
import { help, singleKeys } from "./keys";
import { Endings, List } from "./list";
import { Empty, Failed, Loading } from "./parts";
import * as q from "./queue";

export function QueueTab() {
  const asking = useSignal<Asking>("none");
  const list = q.queue.value;
  const proposal = q.current.value;

  useEffect(q.keepFresh, []);
  useEffect(() => {
    asking.value = "none";
  }, [proposal?.proposal_id]);
  useEffect(() => {
    const acts: Record<string, () => void> = {
      u: undo,
      ...(proposal === null ? {} : {
        a: () => approve(proposal, false, asking),
        s: () => approve(proposal, true, asking),
        e: () => ask(proposal, "edit", asking),
        r: () => ask(proposal, "reject", asking),
        x: () => { if (proposal.status === "pending") q.toggle(proposal); },
      }),
    };
    const steps: Record<string, number> = { j: 1, k: -1 };
    const press = (event: KeyboardEvent) => {
      if (!singleKeys.value || help.value || event.ctrlKey || event.metaKey || event.altKey) return;
      if ((event.target as HTMLElement).closest("input:not([type=checkbox]), textarea, select, dialog[open]") !== null) return;
      const key = event.key.toLowerCase();
      const by = steps[key];
      if (by !== undefined) q.move(by);
      // A key that is held down decides once.
      else if (acts[key] !== undefined && !event.repeat) acts[key]();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [proposal]);

  if (!q.loaded.value) {
    return q.failure.value === null ? (
      <Loading what="Loading the queue…" />
    ) : (
      <Failed title="The queue could not be loaded" why={q.failure.value} retry={() => void q.refresh()} />
    );
  }
  return (
    <>
      <Strip />
      <Endings />
      {list.length === 0 && proposal === null && q.missing.value === null ? (
        <Empty title="Nothing waits for you">New proposals appear here by themselves.</Empty>
      ) : (
        <div class={list.length === 0 ? "queue alone" : "queue"}>
          {list.length > 0 && <List list={list} />}
          {proposal !== null ? <Detail proposal={proposal} asking={asking} /> : <Nothing />}
        </div>
      )}
    </>
  );
}

function Nothing() {
  if (q.missing.value !== null) {
    return <Empty title="There is no such proposal">It was erased, or it is not yours to see.</Empty>;
  }
  return q.focused.value === null ? <Empty title="Choose a proposal" /> : <Loading what="Loading the proposal…" />;
}

function Strip() {
  const found = q.statistics.value;
  if (found === null || found.decisions === 0) return null;
  const share = (value: number | null) => (value === null ? "–" : `${Math.round(value * 100)} %`);
  const seconds = found.median_seconds_to_decide;
  return (
    <aside class={`strip ${found.warning ? "warn" : ""}`} aria-label="Your team's habits">
      <span>Last {found.days} days: {found.decisions} {found.decisions === 1 ? "decision" : "decisions"}</span>
      <span>approved {share(found.approve_rate)}</span>
      <span>edited {share(found.edit_rate)}</span>
      <span>overridden {share(found.override_rate)}</span>
      <span>median {seconds === null ? "–" : duration(seconds)}</span>
      {found.warning && <strong>More than nine in ten are approved. Is each one read?</strong>}
    </aside>
  );
}

function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}
