import { serviceFetch, tokenSource } from 'express-service-auth/client'
import type { Tell } from './outbox.js'

export interface TellBillingOptions {
  readonly coreUrl: string
  /** The API domain: the `iss` of tokens. */
  readonly issuer: string
  readonly apiKey: string
  readonly billingUrl: string
}

/** Orders as a caller: what it may tell twice has one key, so that billing takes it once. */
export function tellBilling({ coreUrl, issuer, apiKey, billingUrl }: TellBillingOptions): Tell {
  const tokens = tokenSource({
    core: { baseUrl: coreUrl, apiKey },
    apiDomain: issuer,
    claims: {
      aud: 'billing',
      sub: 'orders',
      source: 'microservice',
      token_type: 'service-access',
      permissions: ['billing:tell'],
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
