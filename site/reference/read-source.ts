import { fileURLToPath } from 'node:url'
import { Application, type ProjectReflection } from 'typedoc'
import { keepCaseComments } from './case-comments.js'
import type { EntryPoint } from './entry-points.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const HERE = fileURLToPath(new URL('.', import.meta.url))

/** What the pages are made of: all that the entry points export, by modules in their order. */
export interface ReadSource {
  readonly application: Application
  readonly project: ProjectReflection
}

/**
 * Reads the doc comments of all entry points.
 *
 * @throws Error when typedoc can read nothing, a link leads nowhere, or a type is shown that has no
 * place in the reference.
 */
export async function readSource(
  entryPoints: readonly EntryPoint[],
  out: string,
): Promise<ReadSource> {
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: entryPoints.map(({ source }) => `${ROOT}${source}`),
    tsconfig: `${HERE}tsconfig.json`,
    out,
    logLevel: 'Warn',
    readme: 'none',
    // The compiler of the project has done that, and it takes most of the time.
    skipErrorChecking: true,
    disableSources: true,
    excludeExternals: true,
    excludeInternal: true,
    sort: ['source-order'],
    intentionallyNotExported: [
      'KyselyTransactionBuilder',
      'KyselyExecutor',
      'QueryRunnerLike',
      'NameTransform',
    ],
    validation: { notExported: true, invalidLink: true, invalidPath: true, notDocumented: false },
    ...LAYOUT,
  })
  const finish = keepCaseComments(application)
  const project = await application.convert()
  if (project === undefined) throw new Error('typedoc has read nothing')
  finish()
  application.validate(project)
  const faults = application.logger.errorCount + application.logger.warningCount
  if (faults > 0) throw new Error(`the reference has ${faults} faults, see above`)
  for (const { source, page } of entryPoints) {
    const name = source.replace(/^src\//, '').replace(/(?:\/index)?\.ts$/, '')
    const module = project.children?.find((child) => child.name === name)
    if (module === undefined) throw new Error(`typedoc has no module «${name}»`)
    module.name = page
  }
  return { application, project }
}

/** One page an entry point, tables for members, nothing of where a thing was declared or inherited. */
const LAYOUT = {
  outputFileStrategy: 'modules',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  expandParameters: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  propertyMembersFormat: 'table',
  tableColumnSettings: {
    hideDefaults: true,
    hideInherited: true,
    hideModifiers: true,
    hideOverrides: true,
    hideSources: true,
  },
}
