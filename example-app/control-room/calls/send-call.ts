import { randomUUID } from 'node:crypto'
import { ActionError, type Receivers } from '../ports.js'
import type { CallAnswer, CallOrder, CallResult, OperatorView, ReceiverName } from '../protocol.js'
import { operatorView } from '../verdict/verdict.js'
import type { CallEvents } from './call-events.js'
import type { Catalogue } from './catalogue.js'
import { type Addressed, type Composed, curlCommand, requestBytes, requestText } from './compose.js'
import { exchange, type RawAnswer, type RawCall } from './raw-exchange.js'
import type { Remembered } from './remembered.js'
import { shownToken } from './shown-token.js'
import { type Mint, type Minted, mintToken } from './tokens.js'

/** What calls are made with. */
export interface CallParts {
  readonly mint: Mint
  readonly receivers: Pick<Receivers, 'urlOf' | 'tlsOf' | 'orders' | 'states'>
  readonly catalogue: Pick<Catalogue, 'find'>
  readonly remembered: Remembered
  readonly events: CallEvents
  readonly clock: () => number
  /** Milliseconds until an answer must be there. */
  readonly answerLimitMs: number
}

/** How long to wait for the report of a call; a receiver reports every 50 ms, a busy one later. */
const REPORT_LIMIT_MS = 3000

/** The value of an Authorization header, and what goes with it. */
export interface Credential {
  readonly authorization: string
  /** Why the catalogue says that it must be refused. */
  readonly hostility?: string
  /** Returns a proof of the key that its token is bound to. */
  readonly prove?: Minted['prove']
  /** It goes over TLS, with the client certificate. */
  readonly isCertified?: boolean
}

/**
 * The credential that an order asks for: hostile, used before or new.
 * @throws {ActionError} when there is none
 */
export async function credentialFor(order: CallOrder, parts: CallParts): Promise<Credential> {
  const { mint, catalogue, remembered } = parts
  if (order.hostileToken !== undefined) {
    const hostile = catalogue.find(order.hostileToken)
    if (hostile) return { authorization: hostile.authorization, hostility: hostile.why }
    throw new ActionError('There is no hostile token of this name')
  }
  if (order.isTokenReused) return credentialWith(remembered.tokenOf(order.caller), order)
  const minted = await mintToken(mint, order)
  remembered.keepToken(order.caller, minted)
  return credentialWith(minted, order)
}

function credentialWith({ token, prove }: Minted, { binding, caller }: CallOrder): Credential {
  if (binding === 'key') {
    if (prove) return { authorization: `DPoP ${token}`, prove }
    throw new ActionError(`The last token of ${caller} is not bound to a key`)
  }
  return { authorization: `Bearer ${token}`, isCertified: binding === 'certificate' }
}

/** A request that is ready to be sent. */
export interface ReadyCall {
  readonly receiver: ReceiverName
  readonly composed: Composed
  readonly credential: Credential
}

export interface SentCall extends RawAnswer {
  readonly addressed: Addressed
  readonly sentAt: number
  /** Waits shortly for the report of the receiver. */
  view(): Promise<OperatorView>
}

/** Sends a request, and begins to gather its reports. */
export async function sendReady(ready: ReadyCall, parts: CallParts): Promise<SentCall> {
  const { receiver, composed, credential } = ready
  const { url, tls } = wayTo(receiver, credential, parts)
  const call = randomUUID()
  const { method, path } = composed
  const proof = await credential.prove?.({ method, url: `${url}${path}` })
  const addressed = {
    url,
    authorization: credential.authorization,
    ...(proof !== undefined && { proof }),
    ...(tls !== undefined && { certificatePath: parts.mint.certificate.path }),
    call,
  }
  const expected = parts.events.expect(call)
  const sentAt = parts.clock()
  const request = requestBytes(composed, addressed)
  const { isReplay, ...sent } = await exchange({ url, tls, request, limitMs: parts.answerLimitMs })
  const { phase } = parts.receivers.states().find(({ name }) => name === receiver) ?? {}
  const answer =
    phase === 'ready' ? sent.answer : explained(sent.answer, `${receiver} was ${phase}`)
  return {
    answer,
    isReplay,
    addressed,
    sentAt,
    async view() {
      const isUnsent = 'failure' in answer && !answer.isSent
      const report = await expected.report(isUnsent ? 0 : REPORT_LIMIT_MS)
      expected.forget()
      return operatorView({ method: composed.method, answer, ...report })
    },
  }
}

function wayTo(
  receiver: ReceiverName,
  { isCertified }: Credential,
  { receivers, mint }: CallParts,
): Pick<RawCall, 'url' | 'tls'> {
  if (!isCertified) return { url: receivers.urlOf(receiver) }
  const { url, ca } = receivers.tlsOf(receiver)
  const { cert, key } = mint.certificate
  return { url, tls: { ca, cert, key } }
}

/** The reason of a connection that fails is the state of the receiver. */
const explained = (answer: CallAnswer, why: string): CallAnswer =>
  'failure' in answer ? { ...answer, failure: `${why}: ${answer.failure}` } : answer

/**
 * Composes a call, sends it, and returns what its two sides have seen. Never rejects for what became of
 * the request.
 * @throws {ActionError} when it cannot be composed
 */
export async function sendCall(
  order: CallOrder,
  composed: Composed,
  parts: CallParts,
): Promise<CallResult> {
  const { receiver } = order
  const credential = await credentialFor(order, parts)
  const sent = await sendReady({ receiver, composed, credential }, parts)
  return {
    id: sent.addressed.call,
    sentAt: sent.sentAt,
    request: {
      receiver,
      text: requestText(composed, sent.addressed),
      curl: curlCommand(composed, sent.addressed),
      token: shownToken(credential.authorization, credential.hostility),
    },
    answer: sent.answer,
    operator: await sent.view(),
  }
}
