import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openSource } from '../../../src/migration/source/source.js'
import { each, fileOf, MAX_BYTES, openFor, recordsOf, sourceOf } from './sources.js'

const SECRET = 'of-a-person'

const badSource = (message: RegExp | string, line?: number) =>
  expect.objectContaining({
    name: 'MigrationError',
    code: 'bad_source',
    message: expect.stringMatching(message),
    ...(line === undefined ? {} : { line }),
  })

describe('a source in a file', () => {
  it('gives its records with their lines and bytes, and a digest', async () => {
    const text = '{"a":1}\n\n \t\r\n{ "b" : "é" }\r\n{"c":[]}'
    const source = await sourceOf(text)
    expect(() => source.digest()).toThrow('not been read to its end')
    expect(await recordsOf(source)).toEqual([
      { line: 1, value: { a: 1 }, bytes: 7 },
      { line: 4, value: { b: 'é' }, bytes: 14 },
      { line: 5, value: { c: [] }, bytes: 8 },
    ])
    expect(source.digest()).toBe(createHash('sha256').update(text).digest('hex'))
    expect(await recordsOf(source)).toHaveLength(3)
  })

  it('gives every record, wherever its line falls in what is read at once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 200_000 }), { minLength: 1, maxLength: 12 }),
        fc.constantFrom('\n', '\r\n'),
        async (lengths, lineBreak) => {
          const given = lengths.map((length, index) => ({ id: index, text: 'é'.repeat(length) }))
          const file = await fileOf(given.map((record) => JSON.stringify(record)).join(lineBreak))
          const source = openSource({ file }, { maxRecordBytes: 500_000 })
          expect((await recordsOf(source)).map(({ value }) => value)).toEqual(given)
        },
      ),
      { numRuns: 15 },
    )
  })

  it.each([
    ['empty', '', 'holds no record', undefined],
    ['not UTF-8', Buffer.from('{"a":1}\n{"b":"\xe9"}\n', 'latin1'), 'not UTF-8', 2],
    ['UTF-16', Buffer.from('\ufeff{"a":1}\n', 'utf16le'), 'not UTF-8', 1],
    ['begun with a byte order mark', '\ufeff{"a":1}\n', 'byte order mark', 1],
    ['cut in mid-line', `{"a":1}\n{"b":"${SECRET}`, 'ends in the middle', 2],
    ['cut within a character', Buffer.from('{"a":1}\n{"b":"é').subarray(0, -1), 'ends in', 2],
    ['an array', `[{"a":"${SECRET}"},\n{"b":1}]\n`, 'array', 1],
    ['an object on many lines', '{\n"a":1\n}\n', 'not JSON', 1],
    ['not JSON', `{"a":1}\n{"b":${SECRET}}\n`, 'not JSON', 2],
    ['text', `{"a":1}\n\n"${SECRET}"\n`, 'not a JSON object', 3],
    ['of an oversized line', `{"a":1}\n{"b":"${'x'.repeat(MAX_BYTES)}"}\n`, 'longer than 1000', 2],
    ['of a line without end', `{"a":1}\n{"b":"${'x'.repeat(2e6)}`, 'longer than 1000', 2],
  ])('is refused when it is %s', async (_, content, message, line) => {
    const source = await sourceOf(content)
    for (let time = 0; time < 2; time += 1) {
      const error = await recordsOf(source).catch((thrown) => thrown)
      expect(error).toEqual(badSource(message, line))
      expect(error.message).not.toMatch(new RegExp(`${SECRET}|\n`))
      expect(error.message).toContain('users.ndjson')
    }
  })

  it('takes a record of just the largest size, with CR LF as well', async () => {
    const record = `{"b":"${'x'.repeat(MAX_BYTES - 8)}"}`
    const source = await sourceOf(`${record}\r\n${record}`)
    expect((await recordsOf(source)).map(({ bytes }) => bytes)).toEqual([1000, 1000])
  })

  it('is refused when it is missing, a folder or a pipe', async () => {
    const folder = dirname(await fileOf(''))
    const refused = (file: string, message: string) =>
      expect(recordsOf(openFor({ file }))).rejects.toEqual(badSource(message))
    await refused(join(folder, 'nothing'), 'the source does not exist: check its path')
    await refused(folder, 'not a regular file')
    await promisify(execFile)('mkfifo', [join(folder, 'pipe')])
    await refused(join(folder, 'pipe'), 'not a regular file')
  })

  it.each([
    ['a record more', '{"a":1}\n{"b":1}\n{"c":1}\n', 3, [1, 2]],
    ['another record', '{"a":1}\n{"b":2}\n', 2, [1]],
    ['a record less', '{"a":1}\n', undefined, [1]],
    ['a blank line more', '{"a":1}\n{"b":1}\n\n', undefined, [1, 2]],
  ])('is refused once it has %s, which is never given', async (_, content, line, given) => {
    const file = await fileOf('{"a":1}\n{"b":1}\n')
    const source = openFor({ file })
    await recordsOf(source)
    await writeFile(file, content)
    const lines: number[] = []
    const read = async () => {
      for await (const record of source.records()) lines.push(record.line)
    }
    await expect(read()).rejects.toEqual(badSource('has changed since it was first read', line))
    expect(lines).toEqual(given)
  })

  it('can be left early, and ends when its signal aborts', async () => {
    const source = await sourceOf('{"a":1}\n{"b":1}\n{"c":1}\n')
    for await (const { line } of source.records()) if (line === 2) break
    const abort = new AbortController()
    const lines: number[] = []
    const read = async () => {
      for await (const { line } of source.records(abort.signal)) {
        lines.push(line)
        abort.abort(new Error('enough'))
      }
    }
    await expect(read()).rejects.toThrow('enough')
    expect(lines).toEqual([1])
  })

  it('is of corrections, with their code', async () => {
    const file = await fileOf('{"a":1}\n[]\n')
    const corrections = openSource({ file }, { maxRecordBytes: 100, code: 'bad_corrections' })
    await expect(recordsOf(corrections)).rejects.toMatchObject({
      code: 'bad_corrections',
      line: 2,
    })
    await rm(file)
    await mkdir(file)
    await expect(recordsOf(corrections)).rejects.toThrow('the file of corrections is not')
  })
})

describe('a source of records', () => {
  const open = (...values: unknown[]) => openFor({ name: 'legacy', records: () => each(values) })

  it('gives them as JSON makes them, each time', async () => {
    const source = open({ a: new Date(0), b: undefined }, { c: 'é' })
    expect(await recordsOf(source)).toEqual([
      { line: 1, value: { a: '1970-01-01T00:00:00.000Z' }, bytes: 32 },
      { line: 2, value: { c: 'é' }, bytes: 10 },
    ])
    const digest = source.digest()
    await recordsOf(source)
    expect([source.name, source.digest()]).toEqual(['legacy', digest])
  })

  it.each([
    ['an array', [[]], 'not a JSON object', 1],
    ['what JSON cannot hold', [{ a: 1n }], 'not a JSON object', 1],
    ['a record too large', [{ a: 'é'.repeat(500) }], 'longer than 1000', 1],
  ])('is refused when it gives %s', async (_, values, message, line) => {
    await expect(recordsOf(open(...values))).rejects.toEqual(badSource(message, line))
  })

  it('is refused when it is empty, or differs the second time', async () => {
    await expect(recordsOf(open())).rejects.toEqual(badSource('no record'))
    let times = 0
    const source = openFor({ name: 'legacy', records: () => each([{ times: times++ }]) })
    await recordsOf(source)
    await expect(recordsOf(source)).rejects.toEqual(badSource('has changed'))
  })

  it('passes on what its own function throws', async () => {
    const source = openFor({
      name: 'legacy',
      records: () => {
        throw new RangeError('mine')
      },
    })
    await expect(recordsOf(source)).rejects.toThrow(new RangeError('mine'))
  })
})
