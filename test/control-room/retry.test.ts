import { expect, it } from 'vitest'
import { calls, type LoggedCall } from '../../example-app/control-room/page/compose/call-log.js'
import { GOOD_WRITE } from '../../example-app/control-room/page/compose/good-calls.js'
import { retriable } from '../../example-app/control-room/page/panels/writes-sent.js'

it('offers to send a write again that has a key, and no other', () => {
  const sent = (number: number, idempotencyKey: 'new' | 'none'): LoggedCall => ({
    number,
    order: { ...GOOD_WRITE, idempotencyKey },
    howMany: 'one',
    end: { kind: 'waiting' },
  })
  calls.value = [sent(1, 'none')]
  expect(retriable.value).toBeUndefined()
  calls.value = [sent(3, 'none'), sent(2, 'new'), sent(1, 'new')]
  expect(retriable.value?.number).toBe(2)
})
