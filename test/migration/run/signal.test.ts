import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { scene } from './support/scene.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

it('a run is interrupted by a time limit that nobody else refers to', async () => {
  const { open } = scene({
    async tenants({ signal } = {}) {
      if (signal !== undefined) await once(signal, 'abort')
      throw signal?.reason
    },
  })
  const migration = await open()
  const run = migration.run({ signal: AbortSignal.timeout(100) })
  const isOver = { value: false }
  const ended = run.finally(() => {
    isOver.value = true
  })
  for (let n = 0; n < 60 && !isOver.value; n++) {
    collectGarbage()
    await sleep(20)
  }
  expect(isOver.value).toBe(true)
  expect(await ended).toMatchObject({ state: 'interrupted' })
})
