/**
 * A page of the site that a program makes.
 *
 * Programs hand their pages over as `export const madePages = async (): Promise<readonly MadePage[]>`
 * of a module that `site/make/main.ts` lists.
 */
export interface MadePage {
  /** Below the site's root, without an ending: `reference/client`. */
  readonly path: string
  /** What the navigation calls it, below its group. */
  readonly title: string
  /** A group of `site/make/table.ts`. */
  readonly group: string
  /**
   * Markdown that begins with its `#` heading. A link leads to a page by its path from the root of the
   * site (`/reference/client#tokensource`), or to a document or a file of the repository by its path from
   * the root of the repository (`/README.md#quick-start`, `/src/index.ts`). Anchors are as GitHub makes them
   * of headings, or explicit: `## Heading {#anchor}`.
   */
  readonly text: string
  /** Files of the repository whose place it takes: links to them lead here. */
  readonly standsFor?: readonly string[]
}
