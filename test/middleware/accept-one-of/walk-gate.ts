import type { NextFunction, RequestHandler, Response } from 'express'
import {
  acceptOneOf,
  type Choice,
  type DecisionEvent,
  serviceCredential,
} from 'express-service-auth'
import { afterEach, expect, vi } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import type { ExpressModule } from '../../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../../support/receiver/open-receiver.js'
import { authFor, type Receiver, startBehind } from '../../support/receiver/receiver.js'
import { INVALID_TOKEN, NO_TOKEN } from '../../support/receiver/refusal-bytes.js'

export const pass: RequestHandler = (_request, _response, next) => next()

/** Makes a choice that every request presents and that accepts it. */
export const choice = (change: Partial<Choice> = {}): Choice => ({
  name: 'any',
  presented: () => true,
  verify: pass,
  identity: () => 'somebody',
  ...change,
})

export const service = () => ({ name: 'service', ...serviceCredential(authFor(issuer.policy())) })

export const bearerOfService = () => `Bearer ${issuer.token()}`

export const gateFor = (...choices: [Choice, ...Choice[]]) => acceptOneOf(choices)

export type Outcome = 'passed' | 'fault' | 'invalid' | 'none' | string

interface Walk {
  readonly receiver: Receiver
  readonly told: DecisionEvent[]
  readonly outcome: Outcome
}

/** Sends one request through an `acceptOneOf` of these choices, and returns how it ended. */
export async function walk(
  express: ExpressModule,
  ...choices: [Choice, ...Choice[]]
): Promise<Walk> {
  const told: DecisionEvent[] = []
  const gate = acceptOneOf(choices, { onDecision: (event) => told.push(event) })
  const receiver = await startBehind(express, gate)
  const answer = await receiver.raw()
  // Gives a choice that answers twice the time to do so.
  await new Promise((resolve) => setTimeout(resolve, 5))
  return { receiver, told, outcome: outcomeOf(answer, receiver) }
}

function outcomeOf(answer: string, { handled, errors }: Receiver): Outcome {
  if (handled > 0) return handled === 1 && errors.length === 0 ? 'passed' : `${handled} passes`
  if (errors.length > 1) return `${errors.length} faults`
  if (errors.length === 1) return answer.includes(` ${FAULT_STATUS} `) ? 'fault' : 'fault, answered'
  if (answer === INVALID_TOKEN) return 'invalid'
  if (answer === NO_TOKEN) return 'none'
  return answer.split('\r\n', 1)[0] ?? ''
}

/** Makes each test of the file fail that leaves a rejection unhandled. */
export function watchRejections(): void {
  const rejected = vi.fn()
  process.on('unhandledRejection', rejected)
  afterEach(() => {
    expect(rejected).not.toHaveBeenCalled()
  })
}

const later =
  (act: (response: Response, next: NextFunction) => void): RequestHandler =>
  (_request, response, next) => {
    setTimeout(() => act(response, next), 2)
  }
export const now =
  (act: (response: Response, next: NextFunction) => void): RequestHandler =>
  (_request, response, next) =>
    act(response, next)
export const inPromise =
  (act: (response: Response, next: NextFunction) => void): RequestHandler =>
  async (_request, response, next) => {
    await new Promise((resolve) => setImmediate(resolve))
    act(response, next)
  }

export const WAYS: readonly [string, typeof now][] = [
  ['at once', now],
  ['later', later],
  ['in a promise', inPromise],
]

export const failure = Object.assign(new Error('the verifier is ill'), { status: 418 })
