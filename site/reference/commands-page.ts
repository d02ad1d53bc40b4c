/** A command, and what it prints for `--help`. */
export interface CommandHelp {
  /** Empty for the whole. */
  readonly command: string
  readonly text: string
}

/** The names in the help on the whole, in its order. */
export function commandsIn(help: string): readonly string[] {
  const [, list = ''] = /^Commands:\n((?: {2}.*\n)+)/m.exec(help) ?? []
  return [...list.matchAll(/^ {2}(\S+)/gm)].map(([, name = '']) => name)
}

/** All commands as they tell of themselves. */
export function commandsPage(helps: readonly CommandHelp[]): string {
  return `${[
    '# Commands',
    'What `npx service-auth COMMAND --help` prints. What it is for: ' +
      '[the command service-auth](/docs/cli.md); at work: ' +
      '[the runbook](/docs/operations.md) and [that of a migration](/docs/migration.md).',
    ...helps.map(sectionOf),
  ].join('\n\n')}\n`
}

const sectionOf = ({ command, text }: CommandHelp): string => {
  const name = `service-auth ${command}`.trim()
  return `## ${name} {#${command || 'service-auth'}}\n\n\`\`\`text\n${text.trimEnd()}\n\`\`\``
}
