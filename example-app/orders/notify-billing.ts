import { serviceFetch, tokenSource } from 'express-service-auth/client'
import type { Notify } from './outbox.js'

export interface NotifyBillingOptions {
  readonly coreUrl: string
  /** The API domain: the `iss` of tokens. */
  readonly issuer: string
  readonly apiKey: string
  readonly billingUrl: string
}

/** Orders as a caller: an order that may be sent twice has one key, so that billing records it once. */
export function notifyBilling({
  coreUrl,
  issuer,
  apiKey,
  billingUrl,
}: NotifyBillingOptions): Notify {
  const tokens = tokenSource({
    core: { baseUrl: coreUrl, apiKey },
    apiDomain: issuer,
    claims: {
      aud: 'billing',
      sub: 'orders',
      source: 'microservice',
      token_type: 'service-access',
      permissions: ['billing:notify'],
    },
    singleUse: true,
  })
  const callBilling = serviceFetch(tokens, { origins: [billingUrl] })
  return async (order, id) => {
    const response = await callBilling(`${billingUrl}/placed-orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `"${id}"` },
      body: JSON.stringify(order),
    })
    await response.body?.cancel()
    if (response.status !== 204) throw new Error(`billing answered ${response.status}`)
  }
}
