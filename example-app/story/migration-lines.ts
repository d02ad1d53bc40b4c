import type { MigrationStage } from './migration-stage.js'
import { createPrinter } from './printer.js'

/** What can be tried while the core and the endpoint stay up. */
export function writeMigrationLines({ endpointUrl, token, folder }: MigrationStage): void {
  const { heading, line } = createPrinter()
  line()
  heading('The core and the endpoint stay up; Ctrl-C ends them. To try:')
  line()
  heading('What the journal tells: what is about to be done is there before it is done')
  line(`cat ${folder}/journal/journal.ndjson`)
  line()
  heading('The late sign-up once more; the token is for this story alone')
  line(`printf 'Authorization: Bearer %s' '${token}' |
  curl -si -w '\\n' -H @- -H 'Content-Type: application/json' \\
    -d '{"externalUserId":"gus","identities":[{"provider":"auth0",
      "connection":"Username-Password-Authentication","userId":"gus"}]}' ${endpointUrl}`)
}
