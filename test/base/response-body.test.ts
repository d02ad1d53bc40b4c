import { expect, it } from 'vitest'
import { readResponseBody } from '../../src/base/response-body.js'

it('reads a body up to the limit, and nothing of a larger one', async () => {
  expect(await readResponseBody(new Response('four'), 4)).toEqual(Buffer.from('four'))
  expect(await readResponseBody(new Response('four'), 3)).toBeUndefined()
  expect(await readResponseBody(new Response(null), 0)).toEqual(Buffer.alloc(0))
})

it('stops reading where the limit is passed', async () => {
  let pulled = 0
  let isCancelled = false
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1
      controller.enqueue(new Uint8Array(10))
    },
    cancel() {
      isCancelled = true
    },
  })
  expect(await readResponseBody(new Response(endless), 100)).toBeUndefined()
  expect(isCancelled).toBe(true)
  expect(pulled).toBeLessThan(20)
})
