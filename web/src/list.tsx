/** The list of the queue, its selection, and how a batch ended. */

import { useComputed } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import { online } from "./api";
import { BATCH, decideSelected, endings, type Ending } from "./decide";
import { Changes } from "./changes";
import { Countdown, VerdictChip } from "./parts";
import * as q from "./queue";
import { excerpt, Inline, visible } from "./text";
import type { Proposal } from "./types";

export function List({ list }: { list: Proposal[] }) {
  const box = useRef<HTMLElement>(null);
  const inList = list.some((p) => p.proposal_id === q.focused.value);
  const press = (event: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    const steps = by[event.key];
    if (steps === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    q.move(steps);
  };
  const near = (event: Event) => {
    const { scrollTop, clientHeight, scrollHeight } = event.currentTarget as HTMLElement;
    if (scrollHeight - scrollTop - clientHeight < 2 * clientHeight) void q.extend();
  };
  return (
    <nav class="list" aria-label="Proposals, the next deadline first" ref={box} onKeyDown={press} onScroll={near}>
      <Selection />
      <ul>
        {list.map((proposal, index) => (
          <Item key={proposal.proposal_id} proposal={proposal} entry={!inList && index === 0} />
        ))}
      </ul>
      {q.more.value && <button type="button" class="quiet further" onClick={() => void q.extend()}>Show more</button>}
    </nav>
  );
}

function Selection() {
  const chosen = q.selected.value;
  if (chosen.size === 0) return null;
  const none = !online.value;
  return (
    <div class="batch" role="group" aria-label="Selected proposals">
      <span class="grow">{chosen.size} selected{chosen.size > BATCH && `, ${BATCH} at a time`}</span>
      <button type="button" disabled={none} onClick={() => decideSelected("approve")}>Approve</button>
      <button type="button" disabled={none} class="danger" onClick={() => decideSelected("reject")}>Reject</button>
      <button type="button" class="quiet" onClick={() => (q.selected.value = new Map())}>Clear</button>
    </div>
  );
}

/** One tab stop for the whole list: the arrow keys move in it. */
function Item({ proposal, entry }: { proposal: Proposal; entry: boolean }) {
  const id = proposal.proposal_id;
  const isFocused = useComputed(() => q.focused.value === id).value;
  const isSelected = useComputed(() => q.selected.value.has(id)).value;
  const row = useRef<HTMLLIElement>(null);
  const text = proposal.title ?? proposal.content;
  useLayoutEffect(() => {
    if (!isFocused || row.current === null) return;
    row.current.scrollIntoView({ block: "nearest" });
    const active = document.activeElement;
    if (active === null || !row.current.parentElement?.contains(active)) return;
    row.current.querySelector<HTMLElement>(active.tagName === "INPUT" ? "input" : "button")?.focus({ preventScroll: true });
  }, [isFocused]);
  const stop = isFocused || entry ? 0 : -1;
  return (
    <li ref={row} class={isFocused ? "focused" : ""}>
      <input
        type="checkbox" tabIndex={stop} checked={isSelected} onChange={() => q.toggle(proposal)}
        aria-label={`Select: ${excerpt(text, 60)}`}
      />
      <button type="button" class="item" tabIndex={stop} aria-current={isFocused ? "true" : undefined} onClick={() => q.focus(id)}>
        <span class="excerpt" dir="auto">{visible(excerpt(text, 200))}</span>
        <span class="chips">
          <Countdown until={proposal.expires_at} warn={proposal.warn_secs} critical={proposal.critical_secs} />
          {proposal.screen.verdict !== "clean" && <VerdictChip screen={proposal.screen} />}
          {proposal.conflict !== null && <span class="chip conflict">conflict</span>}
          {proposal.pii && <span class="chip">personal data</span>}
        </span>
      </button>
    </li>
  );
}

/** The rows of the last batch, each with its outcome. */
export function Endings() {
  const rows = endings.value;
  if (rows.length === 0) return null;
  return (
    <section class="card endings" aria-labelledby="endings-title">
      <div class="title-row">
        <h2 id="endings-title">How the batch ended</h2>
        <button type="button" class="quiet" onClick={() => (endings.value = [])}>Dismiss</button>
      </div>
      <ul>{rows.map((row) => <EndingRow key={row.proposal.proposal_id} row={row} />)}</ul>
    </section>
  );
}

function EndingRow({ row }: { row: Ending }) {
  const { proposal } = row;
  return (
    <li>
      <span class={`chip outcome ${row.done ? "clean" : "critical"}`}>{row.words}</span>{" "}
      <a href={`#/queue/${proposal.proposal_id}`}><Inline text={excerpt(proposal.title ?? proposal.content, 120)} /></a>
      {row.changed !== null && <Changes before={proposal} after={row.changed} />}
    </li>
  );
}
