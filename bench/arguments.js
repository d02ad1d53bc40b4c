/**
 * What a run is asked for: `tokens writes` names sections, `--json` wants the figures as JSON and nothing
 * else on standard output, `--json=FILE` wants them in a file besides.
 *
 * @throws Error that names what is neither.
 */
export function readArguments(given, sections) {
  const flags = given.filter((word) => word.startsWith('--'))
  const named = given.filter((word) => !word.startsWith('--'))
  const unknown = [
    ...named.filter((name) => !sections.includes(name)),
    ...flags.filter((flag) => !/^--json(?:=.+)?$/.test(flag)),
  ]
  if (unknown.length > 0) {
    const known = `there are ${sections.join(', ')}, and --json or --json=FILE`
    throw new Error(`no section ${unknown.join(', ')}: ${known}`)
  }
  const [, file] = /^--json=(.+)$/.exec(flags.find((flag) => flag.includes('=')) ?? '') ?? []
  return { named, isJsonAlone: flags.includes('--json'), file }
}
