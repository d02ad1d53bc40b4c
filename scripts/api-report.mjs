// Writes the public declarations of each entry point into a file of api/: npm run build && npm run api. With --check it
// fails if a file is not what it would write.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor'

const FOLDER = 'api'
const COMPILER_OPTIONS = {
  target: 'es2023',
  lib: ['es2023'],
  module: 'nodenext',
  types: ['node'],
  strict: true,
  skipLibCheck: true,
}

const options = process.argv.slice(2)
if (options.some((one) => one !== '--check')) {
  console.error('Usage: npm run api [-- --check]')
  process.exit(2)
}

const temporary = mkdtempSync(join(tmpdir(), 'api-report-'))
try {
  const reports = extractReports(entryPoints(), temporary)
  const known = filesIn(FOLDER)
  const names = [...new Set([...reports.keys(), ...known.keys()])].sort()
  const changed = names.filter((name) => reports.get(name) !== known.get(name))
  if (options.includes('--check')) refuse(changed)
  else write(changed, reports)
} finally {
  rmSync(temporary, { recursive: true })
}

/** The declaration file of each entry point, by the name of its report. */
function entryPoints() {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
  return Object.entries(exports).flatMap(([name, { types }]) =>
    types === undefined
      ? []
      : [[name.replace(/^\.\/?/, '').replaceAll('/', '-') || 'index', types]],
  )
}

/** The report of each entry point, by its file name. */
function extractReports(entries, folder) {
  const files = entries.map(([, types]) => resolve(types))
  const configs = entries.map(([name, types]) => configFor(name, { types, files, folder }))
  // One program for all entry points: most of the time goes into reading the declarations.
  const compilerState = CompilerState.create(configs[0], { additionalEntryPoints: files })
  const messageCallback = (message) => {
    message.handled = true
  }
  for (const config of configs) {
    Extractor.invoke(config, { localBuild: true, compilerState, messageCallback })
  }
  return new Map([...filesIn(folder)].map(([name, text]) => [name, tidy(text)]))
}

function configFor(name, { types, files, folder }) {
  const silent = { default: { logLevel: 'none' } }
  return ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: resolve('package.json'),
    configObject: {
      projectFolder: resolve('.'),
      mainEntryPointFilePath: resolve(types),
      compiler: { overrideTsconfig: { compilerOptions: COMPILER_OPTIONS, files } },
      // A type that an exported one mentions is a part of it, also without a name of its own for users.
      apiReport: {
        enabled: true,
        includeForgottenExports: true,
        reportFileName: name,
        reportFolder: folder,
        reportTempFolder: join(folder, 'temp'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: 'lf',
      messages: {
        compilerMessageReporting: silent,
        extractorMessageReporting: silent,
        tsdocMessageReporting: silent,
      },
    },
  })
}

/**
 * Drops doc comments and what depends on the printer of the declarations. Puts each literal of a union on a line: a new
 * member of a union changes no other line.
 */
function tidy(text) {
  return text
    .replaceAll(/^ *\/\*\*[\s\S]*?\*\/\n/gm, '')
    .replaceAll(/\/\*\*[\s\S]*?\*\/ ?/g, '')
    .replaceAll(/^import type /gm, 'import ')
    .replaceAll(/ =\n +\{$/gm, ' = {')
    .replaceAll(/\}\n *\| \{$/gm, '} | {')
    .replaceAll(/ +$/gm, '')
    .replaceAll(/ ?'[^'\n]*'(?: \| '[^'\n]*')+/g, (union) => {
      const literals = union.trim().split(' | ')
      return `\n${literals.map((literal) => `    | ${literal}\n`).join('')}    `
    })
    .replaceAll(/^\};$/gm, '}\n;')
}

/** The texts of the files in a folder, by name. */
function filesIn(folder) {
  mkdirSync(folder, { recursive: true })
  const files = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isFile())
  return new Map(files.map(({ name }) => [name, readFileSync(join(folder, name), 'utf8')]))
}

function refuse(changed) {
  if (changed.length === 0) return
  const files = changed.map((name) => `${FOLDER}/${name}`).join(', ')
  console.error(
    `The public declarations are not those of ${files}: run npm run api, and review what changes.`,
  )
  process.exitCode = 1
}

function write(changed, reports) {
  for (const name of changed) {
    const file = join(FOLDER, name)
    const report = reports.get(name)
    if (report === undefined) rmSync(file)
    else writeFileSync(file, report)
    console.log(file)
  }
}
