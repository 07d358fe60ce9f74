// The port to the keys that protect the vault.

/** Encrypts the data keys of secrets, for example with a key management service. */
export interface KeyWrapper {
  /** Names the key that `wrap` uses, with 1 to 64 of `A-Z a-z 0-9 _ -`. A new key has a new id. The store keeps it with each secret. */
  readonly id: string;
  /**
   * Encrypts a data key of 32 bytes. `context` is a string of at most 2 KB that `unwrap` gets as well. Key management services call it
   * "encryption context" or "additional authenticated data".
   */
  wrap(key: Uint8Array, context: string): Promise<string>;
  /** Decrypts what `wrap` returned. Throws for another key or context. */
  unwrap(wrapped: string, context: string): Promise<Uint8Array>;
}
