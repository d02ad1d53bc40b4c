import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const bench = (name: string): string =>
  fileURLToPath(new URL(`../../bench/${name}`, import.meta.url))

/** Of a module of the benchmark, which has no types. */
const modules = (name: string) => import(bench(name))

it('makes the page of results from the figures, as it stands', async () => {
  const { resultsPage } = await modules('markdown.js')
  const report = JSON.parse(await readFile(bench('results.json'), 'utf8'))
  expect(resultsPage(report)).toBe(await readFile(bench('results.md'), 'utf8'))
})

it('takes sections and how the figures are wanted, and names what is neither', async () => {
  const { readArguments } = await modules('arguments.js')
  const read = (...given: string[]) => readArguments(given, ['tokens', 'writes'])
  expect(read()).toEqual({ named: [], isJsonAlone: false, file: undefined })
  expect(read('tokens', '--json')).toEqual({
    named: ['tokens'],
    isJsonAlone: true,
    file: undefined,
  })
  expect(read('--json=a.json')).toEqual({ named: [], isJsonAlone: false, file: 'a.json' })
  for (const wrong of ['--jsn', '--json=', 'token']) expect(() => read(wrong)).toThrow(wrong)
})

it('notes every table that is printed, section by section, and prints it elsewhere', async () => {
  const program = `
    import { beginSection, reportOf } from '${bench('report.js')}'
    import { printBeside, printTable } from '${bench('table.js')}'
    printBeside()
    beginSection('one')
    printTable(['what', 'µs'], [['a', 1], ['b', 2.5]])
    beginSection('two')
    console.log(JSON.stringify(reportOf({ node: '24' })))`
  const given = ['--input-type=module', '-e', program]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, given)
  const rows = [
    ['a', '1'],
    ['b', '2.5'],
  ]
  expect(JSON.parse(stdout)).toEqual({
    node: '24',
    sections: [
      { name: 'one', tables: [{ columns: ['what', 'µs'], rows }] },
      { name: 'two', tables: [] },
    ],
  })
  expect(stderr).toContain('| b    |  2.5 |')
})
