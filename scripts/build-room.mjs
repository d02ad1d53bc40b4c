// Builds the control room's page, from which the example serves it, and the programs of its processes,
// which start faster when they are one file. Each file is written whole or not at all: several
// processes may build at once.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const ROOM = new URL('../example-app/control-room/', import.meta.url)
const BUILT = new URL('built/', ROOM)
const pathOf = (name) => fileURLToPath(new URL(name, ROOM))

/** Each file's own address, not that of the whole program: some read what lies beside them. */
const ownAddresses = {
  name: 'own-addresses',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const address = JSON.stringify(pathToFileURL(path).href)
      return { contents: text.replaceAll('import.meta.url', address), loader: 'ts' }
    })
  },
}

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
  entryPoints: {
    receiver: pathOf('receivers/child/main.ts'),
    answer: pathOf('receivers/answer/main.ts'),
    tour: pathOf('tour/player/main.ts'),
  },
  outdir: pathOf('built'),
  outExtension: { '.js': '.mjs' },
  absWorkingDir: ROOT,
  tsconfig: 'tsconfig.json',
  bundle: true,
  packages: 'external',
  platform: 'node',
  target: 'node20',
  format: 'esm',
  plugins: [ownAddresses],
  write: false,
})

const built = await Promise.all([page, programs])
mkdirSync(BUILT, { recursive: true })
write('index.html', readFileSync(pathOf('page/index.html')))
for (const { path, contents } of built.flatMap(({ outputFiles }) => outputFiles)) {
  write(basename(path), contents)
}

function write(name, contents) {
  const file = fileURLToPath(new URL(name, BUILT))
  const unfinished = `${file}.${process.pid}`
  writeFileSync(unfinished, contents)
  renameSync(unfinished, file)
}
