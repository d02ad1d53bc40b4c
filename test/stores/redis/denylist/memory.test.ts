import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { launch } from '../../../support/process/launch.js'
import { ownRedis } from '../kit.js'
import { ISSUER } from './denylist-kit.js'

const MAX_BYTES = 5 * 1024 * 1024

it('10,000 entries take a receiver at most 5 MB', async () => {
  const server = await ownRedis()
  const program = new URL('./memory.child.ts', import.meta.url)
  const args = [String(server.port), ISSUER]
  const { child, kill } = await launch(program, { args, nodeArgs: ['--expose-gc'] })
  onTestFinished(kill)
  const rows: string[] = []
  for (let count = 0; count < 10_000; count++) {
    const kind = count % 2 === 0 ? 'caller' : 'token'
    rows.push(
      JSON.stringify([ISSUER, kind, randomUUID()]),
      `${Date.now() * 1000 + count}|2000000000|-`,
    )
  }
  await server.command('HSET', 'esa:{denylist}:entries', ...rows)
  await server.command('SET', 'esa:{denylist}:version', '1 nonce')
  child.send('go')
  const [{ bytes, callers }] = await once(child, 'message')
  expect(callers).toBe(5000)
  expect(bytes).toBeLessThan(MAX_BYTES)
})
