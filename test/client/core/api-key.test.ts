import { describe, expect, it, vi } from 'vitest'
import { knowSecret } from '../../support/secret-search/index.js'
import { failure, sourceAt, tokenOf } from '../kit.js'
import { answers, hangs, type Lie, minted, startLyingCore } from '../lying-core.js'

const OLD_KEY = 'the-key-before-the-rotation'
const NEW_KEY = 'the-key-after-the-rotation'
const TIMEOUT_MS = 200

const refuses = answers(401, 'Invalid API key')

/** A core that takes this key alone; the keys that it was shown. */
async function coreWith(key: string) {
  const core = await startLyingCore((response, asked) => {
    const shown = core.requests.at(-1)?.headers['api-key']
    const lie: Lie = shown === key ? answers(200, minted(asked)) : refuses
    lie(response, asked)
  })
  return { core, shown: () => core.requests.map(({ headers }) => headers['api-key']) }
}

describe('a key function', () => {
  it('is asked before each request, and may promise', async () => {
    const { core, shown } = await coreWith(NEW_KEY)
    const apiKey = vi.fn(async () => NEW_KEY)
    const source = sourceAt(core.url, { apiKey })
    await tokenOf(source, await tokenOf(source))
    expect(apiKey).toHaveBeenCalledTimes(2)
    expect(shown()).toEqual([NEW_KEY, NEW_KEY])
  })

  it('is asked once more after a 401, so that a rotated key is found', async () => {
    const { core, shown } = await coreWith(NEW_KEY)
    const keys = [OLD_KEY, NEW_KEY]
    const source = sourceAt(core.url, { apiKey: () => keys.shift() ?? 'none' })
    expect(await tokenOf(source)).toMatch(/^ey/)
    expect(shown()).toEqual([OLD_KEY, NEW_KEY])
    expect(source.health()).not.toHaveProperty('lastError')
  })

  it('is asked no more when the second key is refused, too', async () => {
    const { core, shown } = await coreWith(NEW_KEY)
    const source = sourceAt(core.url, { apiKey: () => OLD_KEY })
    await expect(source.token()).rejects.toMatchObject(failure('api_key_refused'))
    expect(shown()).toEqual([OLD_KEY, OLD_KEY])
  })

  it.each<[string, () => unknown]>([
    ['throws', () => raise(OLD_KEY)],
    ['rejects', async () => raise(OLD_KEY)],
    ['gives nothing', () => undefined],
    ['gives an empty text', () => ''],
    ['gives two lines', () => `${OLD_KEY}\r\nhost: elsewhere`],
    ['gives other characters', () => 'schlüssel'],
    ['gives too much', () => 'k'.repeat(1025)],
  ])('that %s ends in an error that does not hold the key', async (_, apiKey) => {
    knowSecret('an API key', OLD_KEY)
    const { core, shown } = await coreWith(NEW_KEY)
    const source = sourceAt(core.url, { apiKey: apiKey as () => string })
    const error = await source.token().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject(failure('api_key_unavailable'))
    expect((error as Error).cause).toBeUndefined()
    expect(shown()).toEqual([])
  })

  it('that takes too long is no failure of the core, and nothing is sent afterwards', async () => {
    const deaf = vi.fn<typeof fetch>(() => new Promise(() => {}))
    let give = (_key: string): void => {}
    const apiKey = () =>
      new Promise<string>((resolve) => {
        give = resolve
      })
    const source = sourceAt('https://core.example', { apiKey, timeoutMs: TIMEOUT_MS, fetch: deaf })
    await expect(source.token()).rejects.toMatchObject(failure('api_key_unavailable'))
    give(NEW_KEY)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(deaf).not.toHaveBeenCalled()
  })

  it('shares one time limit with both requests', async () => {
    const core = await startLyingCore(refuses)
    const signals: unknown[] = []
    const observed: typeof fetch = (input, init) => {
      signals.push(init?.signal)
      if (signals.length === 2) core.lie(hangs)
      return fetch(input, init)
    }
    const options = { apiKey: () => NEW_KEY, fetch: observed, timeoutMs: 1000 }
    await expect(sourceAt(core.url, options).token()).rejects.toMatchObject(failure('core_timeout'))
    expect(signals).toEqual([expect.any(AbortSignal), signals[0]])
    expect(signals[1]).toBe(signals[0])
  })
})

it('a key that is a text is not tried twice', async () => {
  const { core, shown } = await coreWith(NEW_KEY)
  const source = sourceAt(core.url, { apiKey: OLD_KEY })
  await expect(source.token()).rejects.toMatchObject(failure('api_key_refused'))
  expect(shown()).toEqual([OLD_KEY])
})

function raise(secret: string): never {
  throw Object.assign(new Error(`vault: ${secret}`), { secret })
}
