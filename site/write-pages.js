import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

/**
 * Copies the documents of the repository to `made/`, where they keep their places, so that their links work
 * as they are; and writes the three pages that a program has to make. typedoc then adds `made/reference`.
 */

process.chdir(new URL('..', import.meta.url).pathname)
const MADE = 'site/made'
const COPIED = [
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'CODE_OF_CONDUCT.md', 'SECURITY.md'],
  ...['docs', 'bench/README.md', 'example-app/identity-core/README.md'],
]
rmSync(MADE, { recursive: true, force: true })
for (const path of COPIED) cpSync(path, `${MADE}/${path}`, { recursive: true })
cpSync('site/pages', MADE, { recursive: true })

/** The first page shows parts of the README, and the page of figures the tables of the benchmark. */
const readme = readFileSync('README.md', 'utf8').split(/^## /m)
const partOf = (heading) => readme.find((part) => part.startsWith(`${heading}\n`))
const home = readFileSync(`${MADE}/index.md`, 'utf8')
writeFileSync(
  `${MADE}/index.md`,
  home.replaceAll(/<!-- README: (.+) -->/g, (_, heading) => `## ${partOf(heading).trim()}`),
)

const decisions = readdirSync('docs/decisions').map((file) => {
  const [, title] = /^# (.+)$/m.exec(readFileSync(`docs/decisions/${file}`, 'utf8'))
  return `- [${title}](${file})`
})
writeFileSync(
  `${MADE}/docs/decisions/index.md`,
  `# Decisions\n\nWhy things are as they are.\n\n${decisions.join('\n')}\n`,
)

const { bin } = JSON.parse(readFileSync('package.json', 'utf8'))
const help = (...command) =>
  execFileSync(process.execPath, [bin['service-auth'], ...command, '--help'], { encoding: 'utf8' })
const [, list] = /^Commands:\n((?: {2}.*\n)+)/m.exec(help())
const commands = [...list.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name)
const sections = [[], ...commands.map((name) => [name])].map(
  (command) =>
    `## ${['service-auth', ...command].join(' ')}\n\n\`\`\`text\n${help(...command).trimEnd()}\n\`\`\``,
)
writeFileSync(
  `${MADE}/commands.md`,
  `# Commands\n\nThe output of \`npx service-auth COMMAND --help\`. See also [the command line](docs/cli.md).\n\n${sections.join('\n\n')}\n`,
)
