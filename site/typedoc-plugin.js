import { Application, Comment, Converter, ReflectionKind } from 'typedoc'
import { ENTRY_POINTS } from './entry-points.js'

/** Names the modules as they are imported, and warns of a property without a doc comment. */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? []) {
      const entry = ENTRY_POINTS.find(
        ({ source }) => source.replace(/\/index$/, '') === module.name,
      )
      module.name = entry.name
      module.comment = new Comment([{ kind: 'text', text: entry.text }])
    }
  })
  // typedoc's own check also wants a comment on each member of an object literal, such as `ok: true`.
  app.on(Application.EVENT_VALIDATE_PROJECT, (project) => {
    for (const property of project.getReflectionsByKind(ReflectionKind.Property)) {
      const isMember = property.parent.kindOf([ReflectionKind.Interface, ReflectionKind.Class])
      if (isMember && property.name !== 'name' && !property.hasComment()) {
        app.logger.warn(`${property.getFullName()} has no doc comment`)
      }
    }
  })
}
