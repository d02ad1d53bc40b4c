import { expect } from 'vitest'
import type { Answer } from './exchange.js'

/** The order's result, to the byte, from the run itself or kept. */
export function expectResult(
  answer: Answer,
  { key }: { readonly key: string },
  { fence, isReplayed }: { fence: number | undefined; isReplayed: boolean },
): void {
  const body = JSON.stringify({ key, fence, note: 'Zwölf Boxkämpfer ✓'.repeat(20) })
  expect(answer).toMatchObject({ status: 201, isReplayed, body, isWhole: true })
  expect(answer.raw).toMatch(new RegExp(`\r\nlocation: /orders/${key}\r\n`, 'i'))
}

/** Somebody else's run: the same bytes but for what says that it is a replay. */
export function expectReplayOf(first: Answer, answer: Answer): void {
  expect(answer).toMatchObject({ status: first.status, body: first.body, isReplayed: true })
}

export function expectUnknown(answer: Answer): void {
  expect(answer).toMatchObject({ status: 409, problem: 'outcome-unknown', isWhole: true })
  expect(answer.retryAfter).toBeUndefined()
}
