import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { type Behaviour, hang, hangUp, serve } from '../../support/issuer/key-set-server.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { compile } from '../../support/process/compile.js'
import { openKeySetServer } from './open-key-set.js'

const document = { keys: [shapeOfKey('a', 2048)] }
const child = await compile(new URL('./process.child.ts', import.meta.url))

it.each<[string, Behaviour]>([
  ['fetched', serve(document)],
  ['failed', hangUp],
  ['initial', serve(document)],
  ['under way', hang],
  ['policy', serve(document)],
])('a key set that is left open does not hold the process open: %s', async (state, behaviour) => {
  const server = await openKeySetServer(behaviour)
  const command = [child, state, server.url, JSON.stringify(document)]
  const run = promisify(execFile)(process.execPath, command, { timeout: 50_000 })
  const told = state === 'failed' ? 'ServiceAuthError\nleft\n' : 'left\n'
  expect(await run).toMatchObject({ stdout: told, stderr: '' })
})
