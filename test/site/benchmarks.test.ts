import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { barChart } from '../../site/benchmarks/bar-chart.js'
import { benchmarksPage } from '../../site/benchmarks/benchmarks-page.js'
import type { BenchmarkReport } from '../../site/benchmarks/report.js'

const bench = (name: string): string =>
  fileURLToPath(new URL(`../../bench/${name}`, import.meta.url))
const report: BenchmarkReport = JSON.parse(await readFile(bench('results.json'), 'utf8'))
const method = await readFile(bench('README.md'), 'utf8')
const page = benchmarksPage(report, method)

describe('the page of figures', () => {
  it('shows every figure of every table', () => {
    const rows = report.sections.flatMap(({ tables }) => tables.flatMap((table) => table.rows))
    expect(rows.length).toBeGreaterThan(30)
    for (const row of rows) expect(page).toContain(`| ${row.join(' | ')} |`)
  })

  it('says on what they were measured', () => {
    for (const fact of [report.node, report.machine.cpu, report.date, report.package.version]) {
      expect(page).toContain(fact)
    }
  })

  it('draws our time and that of every peer, and says the same in words', () => {
    const [, few = ''] = page.split('### Reads, few tokens {#tokens-1}')
    const [drawing = ''] = few.split('\n\n| ')
    const [ours, ...peers] = report.sections[0]?.tables[0]?.rows ?? []
    expect(peers).toHaveLength(6)
    for (const row of [ours, ...peers]) {
      expect(drawing).toContain(`>${row?.[0]}</text>`)
      expect(drawing).toContain(`${row?.[0]}: ${row?.[1]} µs`)
    }
    expect(drawing.match(/brand/g)).toHaveLength(1)
  })

  it('draws nothing where two are compared, or something else than time', () => {
    const [, client = ''] = page.split('{#client-1}')
    expect(client.split('### ')[0]).not.toContain('<svg')
  })

  it('refuses a figure that is none', () => {
    const rows = [
      ['a', '1'],
      ['b', ''],
      ['c', '3'],
    ]
    const sections = [{ name: 'new', tables: [{ columns: ['work', 'µs'], rows }] }]
    expect(() => benchmarksPage({ ...report, sections }, method)).toThrow('work')
  })

  it('has no link that leads from another folder, and no empty line in a picture', () => {
    expect(page).not.toMatch(/\]\(\.\.?\//)
    expect(
      page
        .split('\n')
        .filter((line) => line.includes('<svg'))
        .every((line) => line.endsWith('</svg>')),
    ).toBe(true)
  })
})

describe('a picture of bars', () => {
  const bars = [
    { label: 'ours & <more>', value: 50, text: '50', isOurs: true },
    { label: 'theirs', value: 100, text: '100', isOurs: false },
  ]
  const drawing = barChart({ id: 'x', title: 'T', description: 'D', bars })

  it('has a title, a description and one name for each', () => {
    expect(drawing).toContain('aria-labelledby="x-title x-description"')
    expect(drawing).toContain('<title id="x-title">T</title><desc id="x-description">D</desc>')
  })

  it('is in proportion, and holds labels as text', () => {
    const widths = [...drawing.matchAll(/<rect [^>]*width="(\d+)"/g)].map(([, width]) =>
      Number(width),
    )
    expect(widths).toEqual([134, 268])
    expect(drawing).toContain('ours &amp; &lt;more>')
  })
})
