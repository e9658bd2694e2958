/** The queue tab: the list, the proposal in focus, the keyboard. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { Countdown, Empty, ScoreBars, ScreenWords, VerdictChip } from "./parts";
import * as q from "./queue";
import { Difference, Marked } from "./text";
import { day, when } from "./time";
import type { Proposal, Relation } from "./types";

type Asking = "none" | "reject" | "override" | "override-supersede" | "edit";

export const singleKeys = { on: localStorage.getItem("remembrancer.keys") !== "off" };

export function QueueTab() {
  const asking = useSignal<Asking>("none");
  const help = useSignal(false);
  const list = q.queue.value;
  const proposal = q.current.value;

  useEffect(() => {
    void q.load();
    return q.keepFresh();
  }, []);
  useEffect(() => {
    asking.value = "none";
  }, [proposal?.proposal_id]);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!singleKeys.on || event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement;
      if (target.closest("input, textarea, select, dialog[open]") !== null) return;
      const act: Record<string, () => void> = {
        j: () => q.move(1),
        k: () => q.move(-1),
        a: () => approve(proposal, false, asking),
        s: () => approve(proposal, true, asking),
        e: () => { if (proposal !== null && !proposal.masked) asking.value = "edit"; },
        r: () => { if (proposal !== null && !proposal.masked) asking.value = "reject"; },
        u: () => q.undo(),
        x: () => { if (proposal !== null) q.toggle(proposal.proposal_id); },
        "?": () => (help.value = !help.value),
      };
      const chosen = act[event.key.toLowerCase()];
      if (chosen !== undefined) {
        event.preventDefault();
        chosen();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [proposal]);

  if (!q.loaded.value) {
    return q.failure.value === null ? (
      <div class="state" aria-busy="true"><p>Loading the queue…</p></div>
    ) : (
      <div class="state" role="alert">
        <h2>The queue could not be loaded</h2>
        <p>{q.failure.value}</p>
        <button type="button" onClick={() => void q.load()}>Try again</button>
      </div>
    );
  }
  return (
    <>
      <Strip />
      {list.length === 0 ? (
        <Empty title="Nothing waits for you">New proposals appear here by themselves.</Empty>
      ) : (
        <div class="queue">
          <List list={list} />
          {proposal === null ? <Empty title="Choose a proposal" /> : <Detail proposal={proposal} asking={asking} />}
        </div>
      )}
      {help.value && <Help close={() => (help.value = false)} />}
    </>
  );
}

function approve(proposal: Proposal | null, supersede: boolean, asking: { value: Asking }): void {
  if (proposal === null || proposal.masked || (supersede && !canSupersede(proposal))) return;
  if (proposal.screen.verdict === "reject") return;
  if (proposal.screen.verdict === "quarantine") asking.value = supersede ? "override-supersede" : "override";
  else q.decide(proposal, { kind: "approve", supersede });
}

function canSupersede(proposal: Proposal): boolean {
  return proposal.conflict !== null && proposal.conflict.live;
}

function Strip() {
  const found = q.statistics.value;
  if (found === null || found.decisions === 0) return null;
  const share = (value: number | null) => (value === null ? "–" : `${Math.round(value * 100)} %`);
  const seconds = found.median_seconds_to_decide;
  return (
    <aside class={`strip ${found.warning ? "warn" : ""}`} aria-label="Your team's habits">
      <span>Last {found.days} days: {found.decisions} decisions</span>
      <span>approved {share(found.approve_rate)}</span>
      <span>edited {share(found.edit_rate)}</span>
      <span>overridden {share(found.override_rate)}</span>
      <span>median {seconds === null ? "–" : seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`}</span>
      {found.warning && <strong>More than nine in ten are approved. Is each one read?</strong>}
    </aside>
  );
}

function List({ list }: { list: Proposal[] }) {
  const chosen = q.selected.value;
  return (
    <nav class="list" aria-label="Proposals, the next deadline first">
      {chosen.size > 0 && (
        <div class="batch" role="group" aria-label="Selected proposals">
          <span>{chosen.size} selected</span>
          <button type="button" onClick={() => void q.decideSelected("approve")}>Approve</button>
          <button type="button" onClick={() => void q.decideSelected("reject")}>Reject</button>
          <button type="button" class="quiet" onClick={() => (q.selected.value = new Set())}>Clear</button>
        </div>
      )}
      <ul>{list.map((proposal) => <Item key={proposal.proposal_id} proposal={proposal} />)}</ul>
    </nav>
  );
}

function Item({ proposal }: { proposal: Proposal }) {
  const id = proposal.proposal_id;
  const isFocused = q.focused.value === id;
  const outcome = q.outcomes.value.get(id);
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isFocused) row.current?.scrollIntoView({ block: "nearest" });
  }, [isFocused]);
  return (
    <li ref={row} class={isFocused ? "focused" : ""}>
      <input
        type="checkbox"
        aria-label={`Select: ${proposal.content.slice(0, 60)}`}
        checked={q.selected.value.has(id)}
        onChange={() => q.toggle(id)}
      />
      <button type="button" class="item" aria-current={isFocused ? "true" : undefined} onClick={() => q.focus(id)}>
        <span class="excerpt" dir="auto">{proposal.title ?? proposal.content}</span>
        <span class="chips">
          <Countdown until={proposal.expires_at} warn={proposal.warn_secs} critical={proposal.critical_secs} />
          {proposal.screen.verdict !== "clean" && <VerdictChip screen={proposal.screen} />}
          {proposal.conflict !== null && <span class="chip conflict">conflict</span>}
          {proposal.pii && <span class="chip">personal data</span>}
          {outcome !== undefined && <span class="chip outcome">{outcome}</span>}
        </span>
      </button>
    </li>
  );
}

function Detail({ proposal, asking }: { proposal: Proposal; asking: { value: Asking } }) {
  const { conflict } = proposal;
  const drift = q.drifted.value?.id === proposal.proposal_id ? q.drifted.value : null;
  return (
    <article class="detail" aria-label="Proposal" key={proposal.proposal_id}>
      <header class="detail-head">
        <div class="chips">
          <Countdown until={proposal.expires_at} warn={proposal.warn_secs} critical={proposal.critical_secs} />
          <VerdictChip screen={proposal.screen} />
          <span class="chip">{proposal.kind}</span>
          {proposal.domain !== null && <span class="chip">{proposal.domain}</span>}
        </div>
        {proposal.title !== null && <h2 dir="auto">{proposal.title}</h2>}
      </header>
      {drift !== null && (
        <div class="banner bad" role="alert">
          <p>The text changed while you were reading. This is what changed:</p>
          <Difference before={drift.before} after={proposal.content} />
          <button type="button" onClick={() => (q.drifted.value = null)}>I have read it</button>
        </div>
      )}
      <div class={conflict === null ? "texts" : "texts two"}>
        <section>
          <h3>Proposed</h3>
          <Marked
            text={proposal.content}
            signals={proposal.screen.signals.filter((s) => s.field === "/content")}
          />
        </section>
        {conflict !== null && (
          <section>
            <h3>Contradicts {conflict.live ? "" : "(no longer live)"}</h3>
            <Difference before={conflict.text} after={proposal.content} />
            <p class="muted">{proposal.scores.conflict?.explanation}</p>
            <p class="muted">Said {conflict.author === null ? "" : `by ${conflict.author}, `}{day(conflict.observed_at ?? conflict.created_at)}.</p>
          </section>
        )}
      </div>
      <ScreenWords screen={proposal.screen} />
      <ScoreBars scores={proposal.scores} />
      <Provenance proposal={proposal} />
      {proposal.masked ? (
        <p class="banner">Personal data is masked for you, so that somebody with that capability must decide.</p>
      ) : (
        <Actions proposal={proposal} asking={asking} blocked={drift !== null} />
      )}
    </article>
  );
}

function Provenance({ proposal }: { proposal: Proposal }) {
  const { submitted_by: who } = proposal;
  return (
    <dl class="facts">
      <dt>Captured</dt>
      <dd>by {who.name} ({who.kind}), {when(proposal.created_at)}, from {proposal.source.replaceAll("_", " ")}</dd>
      {(proposal.author !== null || proposal.observed_at !== null) && (
        <><dt>Said</dt><dd dir="auto">{proposal.author ?? "by somebody"}, {day(proposal.observed_at)}</dd></>
      )}
      {(proposal.valid_from !== null || proposal.valid_to !== null) && (
        <><dt>True</dt><dd>from {day(proposal.valid_from)} until {proposal.valid_to === null ? "further notice" : day(proposal.valid_to)}</dd></>
      )}
      {proposal.data_subjects.length > 0 && <><dt>About</dt><dd dir="auto">{proposal.data_subjects.join(", ")}</dd></>}
      {proposal.entities.length > 0 && (
        <><dt>Entities</dt><dd dir="auto">{proposal.entities.map((e) => `${e.name} (${e.kind})`).join(", ")}</dd></>
      )}
      {proposal.relations.length > 0 && (
        <><dt>Relations</dt><dd><ul class="plain" dir="auto">{proposal.relations.map((r, i) => <li key={i}>{relation(r)}</li>)}</ul></dd></>
      )}
      {proposal.source_prompt !== null && (
        <>
          <dt>Source prompt</dt>
          <dd dir="auto">
            {proposal.source_prompt_verdict !== "clean" && <span class="chip verdict quarantine">suspicious prompt</span>}{" "}
            {proposal.source_prompt}
          </dd>
        </>
      )}
    </dl>
  );
}

function relation(r: Relation): string {
  const object = r.object ?? `${r.value?.value ?? ""}${r.value?.unit ? ` ${r.value.unit}` : ""}`;
  return `${r.subject} ${r.polarity === "-" ? "not " : ""}${r.predicate.replaceAll("_", " ")} ${object}`;
}

function Actions({ proposal, asking, blocked }: { proposal: Proposal; asking: { value: Asking }; blocked: boolean }) {
  const refused = proposal.screen.verdict === "reject";
  if (asking.value === "reject") {
    return (
      <Ask
        title="Why is it rejected?" action="Reject" optional
        send={(reason) => q.decide(proposal, { kind: "reject", ...(reason ? { reason } : {}) })}
        cancel={() => (asking.value = "none")}
      />
    );
  }
  if (asking.value === "override" || asking.value === "override-supersede") {
    const supersede = asking.value === "override-supersede";
    return (
      <Ask
        title="The screen holds this text. Why is it admitted all the same?" action="Approve with this reason"
        send={(overrideReason) => q.decide(proposal, { kind: "approve", supersede, overrideReason })}
        cancel={() => (asking.value = "none")}
      />
    );
  }
  if (asking.value === "edit") return <Edit proposal={proposal} done={() => (asking.value = "none")} />;
  return (
    <div class="actions" role="group" aria-label="Decide">
      <button type="button" class="primary" disabled={blocked || refused} onClick={() => approve(proposal, false, asking)}>
        Approve <kbd>A</kbd>
      </button>
      {canSupersede(proposal) && (
        <button type="button" disabled={blocked || refused} onClick={() => approve(proposal, true, asking)}>
          Approve and supersede <kbd>S</kbd>
        </button>
      )}
      <button type="button" class="danger" onClick={() => (asking.value = "reject")}>Reject <kbd>R</kbd></button>
      <button type="button" onClick={() => (asking.value = "edit")}>Edit <kbd>E</kbd></button>
      <button type="button" class="quiet" onClick={() => q.move(1)}>Skip <kbd>J</kbd></button>
      {refused && <p class="muted">The rules refuse this text now: it can be edited or rejected.</p>}
    </div>
  );
}

function Ask({
  title, action, optional = false, send, cancel,
}: { title: string; action: string; optional?: boolean; send: (text: string) => void; cancel: () => void }) {
  const text = useSignal("");
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const ready = optional || text.value.trim().length > 0;
  return (
    <form
      class="ask"
      onSubmit={(event) => { event.preventDefault(); if (ready) send(text.value.trim()); }}
      onKeyDown={(event) => { if (event.key === "Escape") cancel(); }}
    >
      <label>
        {title} {optional && <span class="muted">(optional)</span>}
        <textarea ref={field} rows={2} maxLength={500} value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); if (ready) send(text.value.trim()); }
          }}
        />
      </label>
      <div class="actions">
        <button type="submit" class="primary" disabled={!ready}>{action} <kbd>Enter</kbd></button>
        <button type="button" class="quiet" onClick={cancel}>Cancel <kbd>Esc</kbd></button>
      </div>
    </form>
  );
}

function Edit({ proposal, done }: { proposal: Proposal; done: () => void }) {
  const content = useSignal(proposal.content);
  const title = useSignal(proposal.title ?? "");
  const failed = useSignal<string | null>(null);
  const busy = useSignal(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const save = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    failed.value = await q.edit(proposal, content.value, title.value);
    busy.value = false;
    if (failed.value === null) done();
  };
  return (
    <form class="ask" onSubmit={(event) => void save(event)} onKeyDown={(event) => { if (event.key === "Escape") done(); }}>
      <label>Title <input value={title.value} maxLength={500} onInput={(e) => (title.value = e.currentTarget.value)} /></label>
      <label>
        Text
        <textarea ref={field} rows={6} maxLength={2000} value={content.value} onInput={(e) => (content.value = e.currentTarget.value)} />
      </label>
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      <div class="actions">
        <button type="submit" class="primary" disabled={busy.value || !content.value.trim()}>Save and screen again</button>
        <button type="button" class="quiet" onClick={done}>Cancel <kbd>Esc</kbd></button>
      </div>
    </form>
  );
}

function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const keys: [string, string][] = [
    ["J / K", "next, previous"], ["A", "approve"], ["S", "approve and supersede (with a conflict)"],
    ["R", "reject with a reason"], ["E", "edit"], ["X", "select for a batch"],
    ["U", "undo, while the request has not left"], ["?", "this help"],
  ];
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="help-title">
      <h2 id="help-title">Keyboard</h2>
      <dl class="facts">{keys.map(([key, what]) => <><dt><kbd>{key}</kbd></dt><dd>{what}</dd></>)}</dl>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}
