import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { knowSecret, recordOutput } from '../support/secret-search/index.js'
import { failure, sourceAt, tokenOf } from './kit.js'
import { answers, breaksOff, mints, startLyingCore } from './lying-core.js'

const KEY = 'the-key-that-must-not-show'

/** Everything that a program could show of a value. */
function shown(value: unknown): string {
  const texts = [inspect(value, { showHidden: true, depth: 20 }), JSON.stringify(value)]
  const text = [...texts, String(value), (value as Error).stack].join('\n')
  recordOutput('a value', value)
  return text
}

it('neither key nor token shows in a source, whatever it holds', async () => {
  knowSecret('an API key', KEY)
  const core = await startLyingCore(mints())
  const source = sourceAt(core.url, { apiKey: KEY })
  const token = await tokenOf(source)
  const text = shown(source) + shown(source.health())
  expect(text).not.toContain(KEY)
  expect(text).not.toContain(token)
  expect(text).not.toContain(token.split('.')[2])
  expect(Object.isFrozen(source)).toBe(true)
})

it('an error holds neither, even where what the fetch throws holds both', async () => {
  knowSecret('an API key', KEY)
  let token = ''
  const telling: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    token = ((await response.json()) as { jwt: string }).jwt
    const request = { input, init, token }
    const cause = Object.assign(new Error(`${KEY} ${token}`), { request, code: KEY })
    throw Object.assign(new TypeError(`no answer to ${KEY}`, { cause }), request)
  }
  const core = await startLyingCore(mints())
  const source = sourceAt(core.url, { apiKey: KEY, fetch: telling })
  const error: unknown = await source.token().catch((thrown: unknown) => thrown)
  expect(error).toMatchObject(failure('core_unreachable'))
  const text = shown(error) + shown(source)
  expect(text).not.toContain(KEY)
  expect(text).not.toContain(token)
  expect((error as Error).cause).toBeUndefined()
})

it.each([
  ['refused', mints({}, { permissions: ['admin'] })],
  ['cut off', breaksOff('hangs up')],
  ['told in an error', answers(500, `your key ${KEY} is wrong`)],
  ['told in a refusal', answers(401, `your key ${KEY} is wrong`)],
])('an answer that is %s is not repeated', async (_, lie) => {
  knowSecret('an API key', KEY)
  const source = sourceAt((await startLyingCore(lie)).url, { apiKey: KEY })
  const error: unknown = await source.token().catch((thrown: unknown) => thrown)
  const text = shown(error) + shown(source.health())
  expect(text).toContain('TokenSourceError')
  expect(text).not.toMatch(/ey[JA]|the-key-that|admin/)
})
