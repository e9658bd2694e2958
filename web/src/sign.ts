/** Signed admin requests (RFC 9421) with a key that cannot leave this browser. */

const DATABASE = "remembrancer";
const TAG = "remembrancer-admin-v1";
const LIFETIME_S = 120;

export interface SigningKey {
  pair: CryptoKeyPair;
  /** Given by the service when an admin registers the public half. */
  keyId: string | null;
}

function opened(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("keys");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function stored<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await opened();
  return new Promise((resolve, reject) => {
    const request = act(database.transaction("keys", mode).objectStore("keys"));
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** The key of this person in this browser, if one was made. */
export async function signingKey(principal: string): Promise<SigningKey | null> {
  return (await stored<SigningKey | undefined>("readonly", (store) => store.get(principal) as IDBRequest)) ?? null;
}

export async function makeKey(principal: string): Promise<SigningKey> {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
  const key = { pair, keyId: null };
  await stored("readwrite", (store) => store.put(key, principal));
  return key;
}

export async function nameKey(principal: string, key: SigningKey, keyId: string): Promise<SigningKey> {
  const named = { ...key, keyId };
  await stored("readwrite", (store) => store.put(named, principal));
  return named;
}

/** The public half in PEM, for an admin to register. */
export async function publicPem(key: SigningKey): Promise<string> {
  const der = await crypto.subtle.exportKey("spki", key.pair.publicKey);
  const lines = base64(der).match(/.{1,64}/g) ?? [];
  return `-----BEGIN PUBLIC KEY-----\n${lines.join("\n")}\n-----END PUBLIC KEY-----\n`;
}

/** The headers to send with exactly this body. Throws when the key has no id yet. */
export async function signedHeaders(key: SigningKey, url: string, body: string): Promise<Record<string, string>> {
  if (key.keyId === null) throw new Error("the key is not registered");
  const digest = `sha-256=:${base64(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body)))}:`;
  const created = Math.floor(Date.now() / 1000);
  const nonce = base64(crypto.getRandomValues(new Uint8Array(24)).buffer);
  const parameters =
    `("@method" "@target-uri" "content-digest" "content-type");created=${created};expires=${created + LIFETIME_S}` +
    `;nonce="${nonce}";keyid="${key.keyId}";tag="${TAG}"`;
  const base = [
    `"@method": POST`,
    `"@target-uri": ${url}`,
    `"content-digest": ${digest}`,
    `"content-type": application/json`,
    `"@signature-params": ${parameters}`,
  ].join("\n");
  const signature = await crypto.subtle.sign(
    { name: "ECDSA", hash: "SHA-256" },
    key.pair.privateKey,
    new TextEncoder().encode(base),
  );
  return {
    "Content-Digest": digest,
    "Signature-Input": `admin=${parameters}`,
    Signature: `admin=:${base64(signature)}:`,
  };
}

function base64(bytes: ArrayBufferLike): string {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}
