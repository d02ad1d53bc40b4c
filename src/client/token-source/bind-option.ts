import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { isObject } from '../../base/options.js'
import { hash } from '../../base/supported-node.js'
import type { DpopKey } from './dpop-key.js'
import type { RequestedConfirmation } from './token-request.js'

/**
 * The key of the caller that tokens are bound to. `'dpop'`: one that the source makes; each request then needs
 * a proof of it. `certificate`: the client certificate of the TLS connections to the receivers, in PEM (of
 * which the first certificate counts) or DER.
 *
 * @inline
 */
export type BindOption = 'dpop' | { readonly certificate: string | Uint8Array }

/** What the tokens are bound to; for a certificate, its thumbprint. */
type Bind = 'dpop' | { readonly thumbprint: string }

export const bindOption = () =>
  z.unknown().transform((value, context): Bind => {
    if (value === 'dpop') return value
    const thumbprint = isObject(value) ? thumbprintIn(value) : undefined
    if (thumbprint !== undefined) return { thumbprint }
    const message = "must be 'dpop' or { certificate: a certificate in PEM or DER }"
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })

/** The error of `X509Certificate` is not reported, because the value may be a private key. */
function thumbprintIn({ certificate, ...others }: Record<string, unknown>): string | undefined {
  const isCertificate = typeof certificate === 'string' || certificate instanceof Uint8Array
  if (!isCertificate || Object.keys(others).length > 0) return undefined
  try {
    return hash('sha256', new X509Certificate(certificate).raw, 'base64url')
  } catch {
    return undefined
  }
}

export const bindFaults = ({ bind, singleUse }: Readonly<Record<string, unknown>>): string[] =>
  singleUse === true && bind === 'dpop'
    ? ["singleUse is not needed with bind: 'dpop': each proof is used once, and its token is not"]
    : []

/** Returns a function that resolves with the `cnf` claim to request; `undefined` if the tokens are not bound. */
export function confirmationOf(
  bind: Bind | undefined,
  key: DpopKey | undefined,
): (() => Promise<RequestedConfirmation>) | undefined {
  if (bind === undefined) return undefined
  if (bind !== 'dpop') return async () => ({ 'x5t#S256': bind.thumbprint })
  return key && (async () => ({ jkt: await key.thumbprint() }))
}
