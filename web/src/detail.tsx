/** One proposal with everything that is needed to judge it. */

import { useComputed } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import { Actions, asking } from "./actions";
import { Changes, entity, relation } from "./changes";
import { Countdown, ScoreBars, ScreenWords, VerdictChip } from "./parts";
import * as q from "./queue";
import { Difference, Inline, Marked } from "./text";
import { day, now, when } from "./time";
import type { Proposal } from "./types";

export function Detail({ proposal }: { proposal: Proposal }) {
  const { conflict } = proposal;
  const article = useRef<HTMLElement>(null);
  const drift = q.drifted.value?.proposal_id === proposal.proposal_id ? q.drifted.value : null;
  const open = useComputed(() => proposal.status === "pending" && Date.parse(proposal.expires_at) > now.value).value;
  useTurn(article, proposal.proposal_id, asking.value !== "none");
  return (
    <article class="detail" aria-label="Proposal" tabIndex={-1} ref={article}>
      <header class="detail-head">
        <div class="chips">
          {open ? (
            <Countdown until={proposal.expires_at} warn={proposal.warn_secs} critical={proposal.critical_secs} />
          ) : (
            <span class="chip status">{proposal.status === "pending" ? "expired" : proposal.status}</span>
          )}
          <VerdictChip screen={proposal.screen} />
          <span class="chip">{proposal.kind}</span>
          {proposal.domain !== null && <span class="chip">{proposal.domain}</span>}
          {proposal.assertion_kind === "inferred" && <span class="chip warn">inferred</span>}
          {proposal.edited_at !== null && <span class="chip">edited</span>}
        </div>
        {proposal.title === null ? <h2 class="out-of-sight">Proposal</h2> : <h2 dir="auto"><Inline text={proposal.title} /></h2>}
      </header>
      {!open && <Closed proposal={proposal} />}
      {open && drift !== null && (
        <div class="banner bad" role="alert">
          <p>This changed while you were reading. This is what changed:</p>
          <Changes before={drift} after={proposal} />
          <div><button type="button" onClick={() => { q.drifted.value = null; article.current?.focus(); }}>I have read it</button></div>
        </div>
      )}
      <div class={conflict === null ? "texts" : "texts two"}>
        <section>
          <h3>Proposed</h3>
          <Marked text={proposal.content} signals={proposal.screen.signals.filter((s) => s.field === "/content")} />
        </section>
        {conflict !== null && (
          <section>
            <h3>Contradicts this memory{conflict.live ? "" : ", which is no longer live"}</h3>
            <Difference before={conflict.text} after={proposal.content} />
            <p class="muted">
              {proposal.scores.conflict !== null && <><Inline text={proposal.scores.conflict.explanation} /> </>}
              Said {conflict.author !== null && <>by <Inline text={conflict.author} />, </>}
              {day(conflict.observed_at ?? conflict.created_at)}. <span class="id">{conflict.memory_id}</span>
            </p>
          </section>
        )}
      </div>
      <ScreenWords screen={proposal.screen} />
      <ScoreBars scores={proposal.scores} />
      <Provenance proposal={proposal} />
      {open && <Actions proposal={proposal} />}
    </article>
  );
}

/** Another proposal begins at its top; the keyboard goes with it when what it was on is gone. */
function useTurn(article: { current: HTMLElement | null }, id: string, form: boolean): void {
  const before = useRef({ id, form });
  useLayoutEffect(() => {
    const turned = before.current.id !== id;
    const closed = before.current.form && !form;
    before.current = { id, form };
    const box = article.current;
    if (box === null || !(turned || closed)) return;
    if (document.activeElement === document.body || document.activeElement === null) box.focus({ preventScroll: true });
    const { top } = box.getBoundingClientRect();
    if (turned && (top < 0 || top > innerHeight / 2)) box.scrollIntoView({ block: "start" });
  }, [id, form]);
}

/** Who decided it, how and why; or that nobody did in time. */
function Closed({ proposal }: { proposal: Proposal }) {
  const { status, decision } = proposal;
  const expired = status === "pending" || status === "expired";
  return (
    <div class="banner" role="status">
      <p>
        {expired
          ? `Nobody decided in time: it expired ${when(proposal.expires_at)}.`
          : <>{status === "approved" ? "Approved" : "Rejected"} by <Inline text={proposal.decided_by ?? "somebody"} />, {when(proposal.decided_at)}.</>}
      </p>
      {decision?.reason && <p>Reason: <Inline text={decision.reason} /></p>}
      {decision?.override_reason && <p>The screen was overridden: <Inline text={decision.override_reason} /></p>}
      {decision?.supersedes && <p>Supersedes <span class="id">{decision.supersedes}</span></p>}
      {proposal.memory_id !== null && <p>Memory <span class="id">{proposal.memory_id}</span></p>}
    </div>
  );
}

function Provenance({ proposal }: { proposal: Proposal }) {
  const { submitted_by: who } = proposal;
  return (
    <dl class="facts">
      <dt>Captured</dt>
      <dd>by <Inline text={who.name} /> ({who.kind}), {when(proposal.created_at)}, from {proposal.source.replaceAll("_", " ")}</dd>
      {(proposal.author !== null || proposal.observed_at !== null) && (
        <><dt>Said</dt><dd>{proposal.author === null ? "by somebody" : <>by <Inline text={proposal.author} /></>}{proposal.observed_at !== null && `, ${day(proposal.observed_at)}`}</dd></>
      )}
      {(proposal.valid_from !== null || proposal.valid_to !== null) && (
        <><dt>True</dt><dd>from {day(proposal.valid_from)} until {proposal.valid_to === null ? "further notice" : day(proposal.valid_to)}</dd></>
      )}
      {proposal.memory_expires_at !== null && <><dt>Kept until</dt><dd>{day(proposal.memory_expires_at)}</dd></>}
      {proposal.source_uri !== null && <><dt>Where it stands</dt><dd><Inline text={proposal.source_uri} /></dd></>}
      {proposal.revision !== null && <><dt>Revision</dt><dd><Inline text={proposal.revision} /></dd></>}
      {proposal.data_subjects.length > 0 && <><dt>About</dt><dd><Inline text={proposal.data_subjects.join(", ")} /></dd></>}
      {proposal.entities.length > 0 && (
        <><dt>Entities</dt><dd><Inline text={proposal.entities.map(entity).join("; ")} /></dd></>
      )}
      {proposal.relations.length > 0 && (
        <><dt>Relations</dt><dd><ul class="plain">{proposal.relations.map((r, i) => <li key={i}><Inline text={relation(r)} /></li>)}</ul></dd></>
      )}
      {proposal.source_prompt !== null && (
        <>
          <dt>Source prompt</dt>
          <dd dir="auto">
            {proposal.source_prompt_verdict !== "clean" && <><span class="chip verdict quarantine">suspicious prompt</span>{" "}</>}
            <Inline text={proposal.source_prompt} />
          </dd>
        </>
      )}
      <dt>Link</dt>
      <dd><a class="id" href={`#/queue/${proposal.proposal_id}`}>{proposal.proposal_id}</a></dd>
      <dt>Digest</dt>
      <dd class="id">{proposal.content_digest}</dd>
    </dl>
  );
}
