/** Administration: signing keys, and erasure with a dry run first. */

import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { ApiProblem, apiUrl, call, idempotencyKey, inWords } from "./api";
import { Inline } from "./text";
import { makeKey, nameKey, publicPem, signedHeaders, signingKey, type SigningKey } from "./sign";
import { when } from "./time";
import type { Me, Principal, Purge } from "./types";

const REASONS = ["data_subject_request", "poisoned", "secret", "unlawful", "retention", "other"];

export function AdminTab({ me }: { me: Me }) {
  const signing = useSignal<SigningKey | null>(null);
  const failed = useSignal<string | null>(null);
  useEffect(() => {
    signingKey(me.principal_id).then(
      (found) => (signing.value = found),
      () => (failed.value = "This browser keeps no keys here (a private window, perhaps): nothing can be signed."),
    );
  }, []);
  return (
    <>
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      <div class="columns">
        <PurgeCard signing={signing.value} />
        <KeyCard me={me} signing={signing} />
        <RegisterCard signing={signing.value} />
      </div>
    </>
  );
}

/** Signed over exactly this address and body, and sent. */
function signedCall<T>(signing: SigningKey, path: string, value: object): Promise<T> {
  const body = JSON.stringify(value);
  return signedHeaders(signing, apiUrl(path), body).then((headers) =>
    call<T>("POST", path, { body, headers: { ...headers, ...idempotencyKey() } }),
  );
}

/** What is refused was not done; what got no answer may have been. */
function signedFailure(error: unknown): string {
  const words = inWords(error);
  return error instanceof ApiProblem ? words : `${words} It may have been done all the same: read the audit chain before you repeat it.`;
}

function isReady(signing: SigningKey | null): signing is SigningKey & { keyId: string } {
  return signing !== null && signing.keyId !== null;
}

function KeyCard({ me, signing }: { me: Me; signing: Signal<SigningKey | null> }) {
  const pem = useSignal("");
  const keyId = useSignal("");
  const copied = useSignal(false);
  const held = signing.value;
  useEffect(() => void (held !== null && publicPem(held).then((text) => (pem.value = text))), [held]);
  const copy = () => void navigator.clipboard.writeText(pem.value).then(() => (copied.value = true), () => (copied.value = false));
  return (
    <section class="card" aria-labelledby="key-title">
      <h2 id="key-title">Your signing key</h2>
      {held === null ? (
        <>
          <p>Erasing needs a request signed by a key that is registered to you. The key is made in this browser and cannot leave it.</p>
          <div><button type="button" class="primary" onClick={() => void makeKey(me.principal_id).then((made) => (signing.value = made))}>Make a key</button></div>
        </>
      ) : (
        <>
          <label>Public key, for an admin to register <textarea class="id" readOnly rows={4} value={pem.value} /></label>
          <div class="actions"><button type="button" onClick={copy}>{copied.value ? "Copied" : "Copy"}</button></div>
          <form class="actions" onSubmit={(event) => {
            event.preventDefault();
            void nameKey(me.principal_id, held, keyId.value.trim()).then((named) => (signing.value = named));
          }}>
            <label class="grow">{held.keyId === null ? "Key id that the registration gave" : "Another key id"}
              <input value={keyId.value} pattern="\s*key_[0-9a-f]{32}\s*" required placeholder="key_…" onInput={(e) => (keyId.value = e.currentTarget.value)} />
            </label>
            <button type="submit">Use it</button>
          </form>
          {held.keyId !== null && (
            <p class="muted">Signs as <span class="id">{held.keyId}</span>. A new key works 24 hours after its registration.</p>
          )}
        </>
      )}
    </section>
  );
}

function RegisterCard({ signing }: { signing: SigningKey | null }) {
  const people = useSignal<Principal[]>([]);
  const who = useSignal("");
  const pem = useSignal("");
  const made = useSignal<{ key_id: string; usable_from: string } | null>(null);
  const failed = useSignal<string | null>(null);
  useEffect(() => {
    call<{ principals: Principal[] }>("GET", "/principals").then(
      (found) => (people.value = found.principals.filter((p) => p.kind === "human" && p.active && p.capabilities.includes("admin"))),
      (error: unknown) => (failed.value = inWords(error)),
    );
  }, []);
  const register = async (event: Event) => {
    event.preventDefault();
    if (!isReady(signing)) return;
    made.value = null;
    failed.value = null;
    try {
      made.value = await signedCall(signing, `/principals/${who.value}/keys`, { algorithm: "ecdsa-p256-sha256", public_key: pem.value });
      pem.value = "";
    } catch (error) {
      failed.value = signedFailure(error);
    }
  };
  return (
    <section class="card" aria-labelledby="register-title">
      <h2 id="register-title">Register an admin's key</h2>
      <p class="muted">Compare the public key with its owner before you sign for it. It works after 24 hours.</p>
      <form class="ask" onSubmit={(event) => void register(event)}>
        <label>Admin
          <select required value={who.value} onChange={(e) => (who.value = e.currentTarget.value)}>
            <option value="">Choose…</option>
            {people.value.map((p) => <option key={p.principal_id} value={p.principal_id}>{p.name}</option>)}
          </select>
        </label>
        <label>Public key <textarea class="id" rows={4} required value={pem.value} placeholder="-----BEGIN PUBLIC KEY-----" onInput={(e) => (pem.value = e.currentTarget.value)} /></label>
        <div class="actions"><button type="submit" disabled={!isReady(signing)}>Sign and register</button></div>
      </form>
      {!isReady(signing) && <p class="muted">You need a registered key yourself. The first one is made at bootstrap.</p>}
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      {made.value !== null && (
        <p class="banner good" role="status"><span>Registered as <span class="id">{made.value.key_id}</span>, usable from {when(made.value.usable_from)}.</span></p>
      )}
    </section>
  );
}

function PurgeCard({ signing }: { signing: SigningKey | null }) {
  const ids = useSignal("");
  const reason = useSignal(REASONS[0] as string);
  const word = useSignal("");
  const shown = useSignal<Purge | null>(null);
  const failed = useSignal<string | null>(null);
  const busy = useSignal(false);
  const list = ids.value.split(/[\s,]+/).filter(Boolean);
  const purge = async (dryRun: boolean) => {
    if (!isReady(signing) || busy.value) return;
    busy.value = true;
    failed.value = null;
    try {
      shown.value = await signedCall<Purge>(signing, "/purge", { memory_ids: list, dry_run: dryRun, reason: reason.value });
      if (!dryRun) ids.value = "";
    } catch (error) {
      shown.value = null;
      failed.value = signedFailure(error);
    } finally {
      word.value = "";
      busy.value = false;
    }
  };
  const ready = isReady(signing) && list.length > 0 && !busy.value;
  const found = shown.value;
  return (
    <section class="card" aria-labelledby="purge-title">
      <h2 id="purge-title">Erase memories</h2>
      <p class="muted">A dry run first: it counts what would go. Erasing cannot be undone.</p>
      <label>Memory ids <textarea class="id" rows={3} value={ids.value} placeholder="mem_…"
        onInput={(e) => { ids.value = e.currentTarget.value; shown.value = null; }} /></label>
      <label>Reason
        <select value={reason.value} onChange={(e) => { reason.value = e.currentTarget.value; shown.value = null; }}>
          {REASONS.map((r) => <option key={r} value={r}>{r.replaceAll("_", " ")}</option>)}
        </select>
      </label>
      <div class="actions"><button type="button" disabled={!ready} onClick={() => void purge(true)}>Dry run</button></div>
      {!isReady(signing) && <p class="muted">{signing === null ? "Make a signing key first." : "Your key has no id yet: have it registered first."}</p>}
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      {found !== null && <Outcome purge={found} />}
      {found?.dry_run === true && found.erased.length > 0 && (
        <form class="actions" onSubmit={(event) => { event.preventDefault(); if (word.value === "erase") void purge(false); }}>
          <label class="grow">Type “erase” to confirm <input value={word.value} autocomplete="off" onInput={(e) => (word.value = e.currentTarget.value)} /></label>
          <button type="submit" class="danger" disabled={word.value !== "erase" || busy.value}>Erase for good</button>
        </form>
      )}
    </section>
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
