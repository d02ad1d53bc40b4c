import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readStandardInput } from '../../../src/cli/input/standard-input.js'

const KIBIBYTE = 1024

function read(chunks: readonly (string | Buffer)[], isTTY = false) {
  const notes: string[] = []
  const stdin = Object.assign(Readable.from(chunks), { isTTY })
  const text = readStandardInput({ stdin, note: (line) => void notes.push(line) }, 'the token')
  return { text, notes }
}

describe('standard input', () => {
  it.each([
    ['abc', 'abc'],
    ['abc\n', 'abc'],
    ['abc\r\n', 'abc'],
    ['abc\n\n', 'abc\n'],
    [' abc ', ' abc '],
  ])('of %j is %j', async (given, text) => {
    expect(await read([given]).text).toBe(text)
  })

  it('may come in pieces that cut a character in two', async () => {
    const bytes = Buffer.from('é')
    expect(await read([bytes.subarray(0, 1), bytes.subarray(1)]).text).toBe('é')
  })

  it.each([
    ['empty', ['\n'], 'standard input is empty; it must contain the token'],
    ['too long', ['a'.repeat(64 * KIBIBYTE), 'b'], 'is longer than 64 KiB'],
    ['not UTF-8', [Buffer.from([0xff])], 'the token on standard input is not valid UTF-8'],
  ])('that is %s is refused', async (_what, chunks, message) => {
    const { text } = read(chunks)
    await expect(text).rejects.toMatchObject({ exitCode: 2, code: 'input' })
    await expect(text).rejects.toThrow(message)
  })

  it('that is endless is not read to its end', async () => {
    const endless = Readable.from(
      (function* () {
        for (;;) yield 'a'.repeat(KIBIBYTE)
      })(),
    )
    const text = readStandardInput({ stdin: endless, note: () => {} }, 'the token')
    await expect(text).rejects.toThrow('longer than 64 KiB')
  })

  it('of a terminal is asked for', async () => {
    const { text, notes } = read(['abc\n'], true)
    expect(await text).toBe('abc')
    expect(notes).toEqual(['Type or paste the token, then press Enter and Ctrl-D:'])
  })
})
