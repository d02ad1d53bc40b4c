// Builds the control room's page, from which the example serves it, and the programs of its processes,
// which start faster when they are one file. Each file is written whole or not at all: several
// processes may build at once.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { PROGRAM_OPTIONS } from './program-options.js'

const ROOM = new URL('../example-app/control-room/', import.meta.url)
const BUILT = new URL('built/', ROOM)
const pathOf = (name: string) => fileURLToPath(new URL(name, ROOM))

const page = build({
  entryPoints: [pathOf('page/main.tsx')],
  outdir: pathOf('built'),
  tsconfig: pathOf('page/tsconfig.json'),
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: ['es2022'],
  legalComments: 'none',
  write: false,
})

const programs = build({
  ...PROGRAM_OPTIONS,
  entryPoints: {
    receiver: pathOf('receivers/child/main.ts'),
    answer: pathOf('receivers/answer/main.ts'),
    tour: pathOf('tour/player/main.ts'),
  },
  outdir: pathOf('built'),
  outExtension: { '.js': '.mjs' },
})

const built = await Promise.all([page, programs])
mkdirSync(BUILT, { recursive: true })
write('index.html', readFileSync(pathOf('page/index.html')))
for (const { path, contents } of built.flatMap(({ outputFiles }) => outputFiles)) {
  write(basename(path), contents)
}

function write(name: string, contents: Uint8Array): void {
  const file = fileURLToPath(new URL(name, BUILT))
  const unfinished = `${file}.${process.pid}`
  writeFileSync(unfinished, contents)
  renameSync(unfinished, file)
}
