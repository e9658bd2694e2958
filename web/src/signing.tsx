/** A person's signing key, and the registration of another admin's. */

import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { Fault, useRequest } from "./request";
import { makeKey, nameKey, publicPem, type SigningKey } from "./sign";
import { signedCall, signedFailure } from "./signed";
import { when } from "./time";
import type { Me, Principal } from "./types";

export function KeyCard({ me, held }: { me: Me; held: Signal<SigningKey | null> }) {
  const pem = useSignal("");
  const keyId = useSignal("");
  const copied = useSignal(false);
  const key = held.value;
  useEffect(() => void (key !== null && publicPem(key).then((text) => (pem.value = text))), [key]);
  const copy = () => void navigator.clipboard.writeText(pem.value).then(() => (copied.value = true), () => (copied.value = false));
  return (
    <section class="card" aria-labelledby="key-title">
      <h2 id="key-title">Your signing key</h2>
      {key === null ? (
        <>
          <p>Erasing needs a request signed by a key that is registered to you. The key is made in this browser and cannot leave it.</p>
          <div><button type="button" class="primary" onClick={() => void makeKey(me.principal_id).then((made) => (held.value = made))}>Make a key</button></div>
        </>
      ) : (
        <>
          <label>Public key, for an admin to register <textarea class="id" readOnly rows={4} value={pem.value} /></label>
          <div class="actions"><button type="button" onClick={copy}>{copied.value ? "Copied" : "Copy"}</button></div>
          <form class="actions" onSubmit={(event) => {
            event.preventDefault();
            void nameKey(me.principal_id, key, keyId.value.trim()).then((named) => (held.value = named));
          }}>
            <label class="grow">{key.keyId === null ? "Key id that the registration gave" : "Another key id"}
              <input value={keyId.value} pattern="\s*key_[0-9a-f]{32}\s*" required placeholder="key_…" onInput={(e) => (keyId.value = e.currentTarget.value)} />
            </label>
            <button type="submit">Use it</button>
          </form>
          {key.keyId === null ? (
            <p class="muted">Have another admin register the public key, then enter the id that they get.</p>
          ) : (
            <p class="muted">Signs as <span class="id">{key.keyId}</span>. A new key works 24 hours after its registration.</p>
          )}
        </>
      )}
    </section>
  );
}

export function RegisterCard({ signing, people }: { signing: SigningKey | null; people: Principal[] }) {
  const who = useSignal("");
  const pem = useSignal("");
  const made = useSignal<{ key_id: string; usable_from: string } | null>(null);
  const { busy, failed, run } = useRequest(signedFailure);
  const admins = people.filter((p) => p.kind === "human" && p.active && p.capabilities.includes("admin"));
  const register = (event: Event) => {
    event.preventDefault();
    if (signing === null) return;
    made.value = null;
    run(async () => {
      made.value = await signedCall(signing, `/principals/${who.value}/keys`, { algorithm: "ecdsa-p256-sha256", public_key: pem.value });
      pem.value = "";
    });
  };
  return (
    <section class="card" aria-labelledby="register-title">
      <h2 id="register-title">Register an admin's key</h2>
      <p class="muted">Compare the public key with its owner before you sign for it. It works after 24 hours. The first admin's key is made at bootstrap.</p>
      <form class="ask" onSubmit={register}>
        <label>Admin
          <select required value={who.value} onChange={(e) => (who.value = e.currentTarget.value)}>
            <option value="">Choose…</option>
            {admins.map((p) => <option key={p.principal_id} value={p.principal_id}>{p.name}</option>)}
          </select>
        </label>
        <label>Public key <textarea class="id" rows={4} required value={pem.value} placeholder="-----BEGIN PUBLIC KEY-----" onInput={(e) => (pem.value = e.currentTarget.value)} /></label>
        <div class="actions"><button type="submit" disabled={signing === null || busy}>Sign and register</button></div>
      </form>
      <Fault why={failed} />
      {made.value !== null && (
        <p class="banner good" role="status"><span>Registered as <span class="id">{made.value.key_id}</span>, usable from {when(made.value.usable_from)}.</span></p>
      )}
    </section>
  );
}
