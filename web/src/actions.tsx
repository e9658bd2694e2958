/** What can be done with the proposal in focus. */

import { signal, useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import { decide, edit, hindrance } from "./decide";
import { say } from "./notice";
import { focused, move } from "./queue";
import type { Proposal } from "./types";

type Asking = "none" | "reject" | "override" | "override-supersede" | "edit";

/** The form that stands open under the proposal in focus. */
export const asking = signal<Asking>("none");
// At once, and not after the next paint: a key pressed before that may have opened a form of the next one.
focused.subscribe(() => (asking.value = "none"));

/** Approve at once, or ask why when the screen holds the text. */
export function approve(proposal: Proposal, supersede: boolean): void {
  if (hindrance(proposal) !== null || (supersede && !canSupersede(proposal))) return;
  if (proposal.screen.verdict === "reject") return;
  if (proposal.screen.verdict === "quarantine") asking.value = supersede ? "override-supersede" : "override";
  else decide([proposal], { kind: "approve", supersede });
}

export function ask(proposal: Proposal, what: "reject" | "edit"): void {
  if (hindrance(proposal) === null) asking.value = what;
}

function canSupersede(proposal: Proposal): boolean {
  return proposal.conflict !== null && proposal.conflict.live;
}

export function Actions({ proposal }: { proposal: Proposal }) {
  const why = useComputed(() => hindrance(proposal)).value;
  const refused = proposal.screen.verdict === "reject";
  const cancel = () => (asking.value = "none");
  switch (asking.value) {
    case "reject":
      return (
        <Ask
          title="Why is it rejected?" action="Reject" tone="danger" optional why={why} cancel={cancel}
          send={(reason) => decide([proposal], { kind: "reject", ...(reason ? { reason } : {}) })}
        />
      );
    case "override":
    case "override-supersede": {
      const supersede = asking.value === "override-supersede";
      return (
        <Ask
          title="The screen holds this text. Why is it admitted all the same?" action="Approve with this reason"
          tone="primary" why={why} cancel={cancel}
          send={(overrideReason) => decide([proposal], { kind: "approve", supersede, overrideReason })}
        />
      );
    }
    case "edit":
      return <Edit proposal={proposal} why={why} done={cancel} />;
  }
  return (
    <div class="actions" role="group" aria-label="Decide">
      {(why ?? (refused ? "The rules refuse this text now: it can be edited or rejected." : null)) !== null && (
        <p class="hindrance" role="status">{why ?? "The rules refuse this text now: it can be edited or rejected."}</p>
      )}
      <button type="button" class="primary" disabled={why !== null || refused} onClick={() => approve(proposal, false)}>
        Approve <kbd>A</kbd>
      </button>
      {canSupersede(proposal) && (
        <button type="button" class="primary supersede" disabled={why !== null || refused} onClick={() => approve(proposal, true)}>
          Approve and supersede <kbd>S</kbd>
        </button>
      )}
      <button type="button" class="danger" disabled={why !== null} onClick={() => ask(proposal, "reject")}>Reject <kbd>R</kbd></button>
      <button type="button" disabled={why !== null} onClick={() => ask(proposal, "edit")}>Edit <kbd>E</kbd></button>
      <button type="button" class="quiet" onClick={() => move(1)}>Skip <kbd>J</kbd></button>
    </div>
  );
}

/** Focus before the event that opened the form is over: the next key is typed into it, however fast it comes. */
function useFirst(field: { current: HTMLTextAreaElement | null }): void {
  useLayoutEffect(() => field.current?.focus(), []);
}

function Ask({
  title, action, tone, optional = false, why, send, cancel,
}: {
  title: string; action: string; tone: string; optional?: boolean; why: string | null;
  send: (text: string) => void; cancel: () => void;
}) {
  const text = useSignal("");
  const field = useRef<HTMLTextAreaElement>(null);
  useFirst(field);
  const ready = why === null && (optional || text.value.trim().length > 0);
  const submit = (event: Event) => {
    event.preventDefault();
    if (ready) send(text.value.trim());
  };
  return (
    <form class="ask" onSubmit={submit} onKeyDown={(event) => { if (event.key === "Escape") cancel(); }}>
      <label>
        {title} {optional && "(optional)"}
        <textarea ref={field} rows={2} maxLength={500} value={text.value} required={!optional}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event); }}
        />
      </label>
      {why !== null && <p class="hindrance" role="status">{why}</p>}
      <div class="actions">
        <button type="submit" class={tone} disabled={!ready}>{action} <kbd>Enter</kbd></button>
        <button type="button" class="quiet" onClick={cancel}>Cancel <kbd>Esc</kbd></button>
      </div>
    </form>
  );
}

function Edit({ proposal, why, done }: { proposal: Proposal; why: string | null; done: () => void }) {
  // What was read when the editing began: saving over somebody else's change must fail.
  const began = useRef(proposal).current;
  const content = useSignal(began.content);
  const title = useSignal(began.title ?? "");
  const failed = useSignal<string | null>(null);
  const busy = useSignal(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useFirst(field);
  const length = Array.from(content.value).length;
  const ready = !busy.value && why === null && content.value.trim() !== "" && length <= 2_000;
  const save = async (event: Event) => {
    event.preventDefault();
    if (!ready) return;
    if (content.value === began.content && title.value.trim() === (began.title ?? "")) {
      say("info", "Nothing was changed.");
      return done();
    }
    busy.value = true;
    failed.value = await edit(began, content.value, title.value);
    busy.value = false;
    if (failed.value === null) done();
  };
  return (
    <form class="ask" onSubmit={(event) => void save(event)} onKeyDown={(event) => {
      if (event.key === "Escape") done();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save(event);
    }}>
      <label>Title (optional) <input value={title.value} maxLength={500} dir="auto" onInput={(e) => (title.value = e.currentTarget.value)} /></label>
      <label>
        Text ({length} of 2,000 characters)
        <textarea ref={field} rows={6} value={content.value} dir="auto" onInput={(e) => (content.value = e.currentTarget.value)} />
      </label>
      {began.relations.length > 0 && <p class="hindrance">Its relations stay as they were captured. Reject it if your text makes them untrue.</p>}
      {(failed.value ?? why) !== null && <p class="banner bad" role="alert">{failed.value ?? why}</p>}
      <div class="actions">
        <button type="submit" class="primary" disabled={!ready}>Save and screen again <kbd>Ctrl Enter</kbd></button>
        <button type="button" class="quiet" onClick={done}>Cancel <kbd>Esc</kbd></button>
      </div>
    </form>
  );
}
