import { describe, expect, it } from 'vitest'
import { ok, replies, startScriptedCore } from './scripted-core.js'

const KEY = 'a-key-that-no-error-tells'

describe('a key function', () => {
  it('that throws is asked once, and nothing is sent', async () => {
    const core = await startScriptedCore([ok({ count: 1 })])
    let asked = 0
    const apiKey = (): string => {
      asked += 1
      throw new Error(`vault: ${KEY}`)
    }
    const refused = { code: 'invalid_api_key', outcome: 'refused' }
    const client = core.client({ apiKey })
    await expect(client.countRows()).rejects.toMatchObject(refused)
    await expect(client.deleteRows([])).rejects.toMatchObject(refused)
    expect([asked, core.requests]).toEqual([2, []])
  })
})

describe('a signal', () => {
  it('ends a call under way with its reason', async () => {
    const ending = new AbortController()
    const core = await startScriptedCore([() => ending.abort(new Error('of the caller'))])
    const options = { signal: ending.signal }
    await expect(core.client().stageUsers([], options)).rejects.toThrow('of the caller')
  })

  it('ends the wait for the next try', async () => {
    const core = await startScriptedCore([replies(500, 'x')])
    const ending = new AbortController()
    const observed: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      setTimeout(() => ending.abort(new Error('in the pause')), 10)
      return response
    }
    const client = core.client({ fetch: observed })
    const asked = client.countRows(undefined, { signal: ending.signal })
    await expect(asked).rejects.toThrow('in the pause')
    expect(core.requests).toHaveLength(1)
  })

  it('serves many calls at once without a warning of Node', async () => {
    const warnings: Error[] = []
    const note = (warning: Error): number => warnings.push(warning)
    process.on('warning', note)
    const core = await startScriptedCore([ok({ count: 1 })])
    const { signal } = new AbortController()
    const client = core.client()
    await Promise.all(Array.from({ length: 40 }, () => client.countRows(undefined, { signal })))
    await new Promise(setImmediate)
    process.off('warning', note)
    expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([])
  })
})

it('the time limit for staging is its own', async () => {
  const core = await startScriptedCore([() => {}])
  const client = core.client({ timeoutMs: 300_000, stageTimeoutMs: 50 })
  const timeout = { code: 'timeout', outcome: 'unknown' }
  await expect(client.stageUsers([])).rejects.toMatchObject(timeout)
  await expect(client.importUser({ loginMethods: [] })).rejects.toMatchObject(timeout)
})

it('what cannot be JSON is the caller’s mistake, and nothing is sent', async () => {
  const core = await startScriptedCore([ok({})])
  const user = { loginMethods: [], userMetadata: { count: 1n } }
  await expect(core.client().stageUsers([user])).rejects.toThrow(TypeError)
  expect(core.requests).toEqual([])
})
