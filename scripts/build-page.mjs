// Builds the control room's page, `example-app/control-room/page`, into a folder from which the
// example serves it. Each file is written whole or not at all: several processes may build at once.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const ROOM = new URL('../example-app/control-room/', import.meta.url)
const BUILT = new URL('built/', ROOM)

const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL('page/main.tsx', ROOM))],
  outdir: fileURLToPath(BUILT),
  tsconfig: fileURLToPath(new URL('page/tsconfig.json', ROOM)),
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: ['es2022'],
  legalComments: 'none',
  write: false,
})

mkdirSync(BUILT, { recursive: true })
write('index.html', readFileSync(new URL('page/index.html', ROOM)))
for (const { path, contents } of outputFiles) write(basename(path), contents)

function write(name, contents) {
  const file = fileURLToPath(new URL(name, BUILT))
  const unfinished = `${file}.${process.pid}`
  writeFileSync(unfinished, contents)
  renameSync(unfinished, file)
}
