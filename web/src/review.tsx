/** The queue tab: the list, the proposal in focus, the keyboard. */

import { useEffect, useLayoutEffect } from "preact/hooks";

import { approve, ask, asking } from "./actions";
import { undo } from "./decide";
import { Detail } from "./detail";
import { help, singleKeys } from "./keys";
import { Endings, List } from "./list";
import { Empty, Failed, Loading } from "./parts";
import * as q from "./queue";
import type { Proposal } from "./types";

export function QueueTab() {
  const list = q.queue.value;
  const proposal = q.current.value;

  useEffect(q.keepFresh, []);
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!singleKeys.value || help.value || event.ctrlKey || event.metaKey || event.altKey) return;
      if ((event.target as HTMLElement).closest("input:not([type=checkbox]), textarea, select, dialog[open]") !== null) return;
      const act = actOf(event.key.toLowerCase(), q.current.value, event.repeat);
      if (act === null) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", press);
    return () => {
      removeEventListener("keydown", press);
      asking.value = "none";
    };
  }, []);

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
          {proposal !== null ? <Detail proposal={proposal} /> : <Nothing />}
        </div>
      )}
    </>
  );
}

/** What a key does. One that is held down decides once. */
function actOf(key: string, proposal: Proposal | null, repeated: boolean): (() => void) | null {
  if (key === "j") return () => q.move(1);
  if (key === "k") return () => q.move(-1);
  if (repeated) return null;
  if (key === "u") return undo;
  if (proposal === null) return null;
  switch (key) {
    case "a": return () => approve(proposal, false);
    case "s": return () => approve(proposal, true);
    case "e": return () => ask(proposal, "edit");
    case "r": return () => ask(proposal, "reject");
    case "x": return () => { if (proposal.status === "pending") q.toggle(proposal); };
    default: return null;
  }
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
      <span>Last {found.days} days: <b>{found.decisions}</b> {found.decisions === 1 ? "decision" : "decisions"}</span>
      <span>approved <b>{share(found.approve_rate)}</b></span>
      <span>edited <b>{share(found.edit_rate)}</b></span>
      <span>overridden <b>{share(found.override_rate)}</b></span>
      <span>median <b>{seconds === null ? "–" : duration(seconds)}</b></span>
      {found.warning && <strong>More than nine in ten are approved. Is each one read?</strong>}
    </aside>
  );
}

function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}
