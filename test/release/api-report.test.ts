import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'

const API_REPORT = fileURLToPath(new URL('../../scripts/api-report.mjs', import.meta.url))

const MAIN = `import type { Shape } from './shape.js';
/** Draws. */
export declare function draw(shape: Shape): 'drawn' | 'too large';
export interface Options {
    /** In pixels. */
    readonly width?: number;
}
`
const SHAPE = `export type Shape =
/** Round. */
{
    readonly kind: 'circle';
}
/** With corners. */
 | {
    readonly kind: 'square';
};
`
const BUNDLED_SHAPE = `type Shape = /** Round. */{
    readonly kind: 'circle';
} /** With corners. */ | {
    readonly kind: 'square';
};
`

/** With the reports of these declarations. */
let reported: string
/** A copy of it for each test. */
let project: string

beforeAll(async () => {
  reported = project = await mkdtemp(join(tmpdir(), 'api-report-test-'))
  await mkdir(join(project, 'dist'))
  await writeFile(join(project, 'dist/index.d.ts'), MAIN)
  await writeFile(join(project, 'dist/shape.d.ts'), SHAPE)
  await writeFile(join(project, 'dist/tool.d.ts'), 'export declare const TOOL: unique symbol;\n')
  await exportFrom({
    '.': { types: './dist/index.d.ts' },
    './deep/tool': { types: './dist/tool.d.ts' },
    './package.json': './package.json',
  })
  await report()
})
afterAll(() => rm(reported, { recursive: true }))

beforeEach(async () => {
  project = await mkdtemp(join(tmpdir(), 'api-report-test-'))
  await cp(reported, project, { recursive: true })
})
afterEach(() => rm(project, { recursive: true }))

const exportFrom = (exports: object): Promise<void> =>
  writeFile(
    join(project, 'package.json'),
    JSON.stringify({ name: 'a-package', type: 'module', exports }),
  )

const report = (...options: readonly string[]) =>
  promisify(execFile)(process.execPath, [API_REPORT, ...options], { cwd: project })

const mainReport = (): Promise<string> => readFile(join(project, 'api/index.api.md'), 'utf8')

it('writes a report for each entry point, with the types that it mentions', async () => {
  expect(await readdir(join(project, 'api'))).toEqual(['deep-tool.api.md', 'index.api.md'])
  expect(await mainReport()).toContain(`
export function draw(shape: Shape):
    | 'drawn'
    | 'too large'
    ;

// @public (undocumented)
export interface Options {
    readonly width?: number;
}

// @public (undocumented)
type Shape = {
    readonly kind: 'circle';
} | {
    readonly kind: 'square';
}
;
`)
})

it('accepts another comment, and bundled declarations', async () => {
  const bundled = `${BUNDLED_SHAPE}${MAIN.replace(/^import.*\n/, '')}export {};\n`
  await writeFile(
    join(project, 'dist/index.d.ts'),
    bundled.replace('In pixels', 'Width, in pixels'),
  )
  expect(await report('--check')).toEqual({ stdout: '', stderr: '' })
})

it('refuses declarations that have changed until their reports are written again', async () => {
  const own = MAIN.replace('./shape', './own')
  const before = {
    'own.d.ts': SHAPE,
    'a.d.ts': own,
    'b.d.ts': MAIN,
    'c.d.ts': own,
    'same.d.ts': own,
  }
  const after = {
    'a.d.ts': own.replace('width?', 'height?'),
    // A type that `b` mentions, and does not export.
    'shape.d.ts': SHAPE.replace('square', 'line'),
    'c.d.ts': `${own}export declare const MORE: number;\n`,
  }
  const write = async (files: Readonly<Record<string, string>>): Promise<void> => {
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(project, 'dist', name), text)
    }
  }
  await write(before)
  await exportFrom(
    Object.fromEntries(
      ['a', 'b', 'c', 'same'].map((name) => [`./${name}`, { types: `./dist/${name}.d.ts` }]),
    ),
  )
  await report()

  await write(after)
  const stderr =
    'The public declarations are not those of api/a.api.md, api/b.api.md, api/c.api.md: run npm run ' +
    'api, and review what changes.\n'
  await expect(report('--check')).rejects.toMatchObject({ code: 1, stderr })
  expect((await report()).stdout).toBe('api/a.api.md\napi/b.api.md\napi/c.api.md\n')
  expect((await report('--check')).stderr).toBe('')
})

it('adds lines only for a new member of a union', async () => {
  const before = (await mainReport()).split('\n')
  const more = MAIN.replace("'too large'", "'too large' | 'too small'")
  await writeFile(join(project, 'dist/index.d.ts'), more)
  const line = "} | {\n    readonly kind: 'line';\n};\n"
  await writeFile(join(project, 'dist/shape.d.ts'), SHAPE.replace('};\n', line))
  await report()
  const after = (await mainReport()).split('\n')
  expect(before.filter((line) => !after.includes(line))).toEqual([])
  expect(after.filter((line) => !before.includes(line))).toEqual([
    "    | 'too small'",
    "    readonly kind: 'line';",
  ])
})

it('refuses the report of an entry point that is gone', async () => {
  await exportFrom({ '.': { types: './dist/index.d.ts' } })
  const stderr = expect.stringContaining('api/deep-tool.api.md')
  await expect(report('--check')).rejects.toMatchObject({ code: 1, stderr })
  await report()
  expect(await readdir(join(project, 'api'))).toEqual(['index.api.md'])
})
