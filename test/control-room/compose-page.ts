import type { Page } from 'playwright-core'

/** Resolves when a call of the page has ended and is shown. */
export async function callIsOver(page: Page, number: number): Promise<void> {
  const line = new RegExp(`^Call ${number}: the caller got`)
  await page.getByRole('status').filter({ hasText: line }).waitFor()
}

/** Presses a preset on a page that has sent nothing, and waits for the last of its calls. */
export async function pressPreset(page: Page, title: string, calls: number): Promise<void> {
  await page.getByRole('button', { name: title }).click()
  await callIsOver(page, calls)
}

/** What the two views show. */
export async function readViews(page: Page) {
  const caller = page.getByRole('region', { name: 'What the caller got' })
  const operator = page.getByRole('region', { name: 'What the operator saw' })
  const [failed] = await operator
    .getByRole('listitem')
    .filter({ hasText: /failed$/ })
    .all()
  return {
    caller: {
      headline: await caller.locator('.headline').textContent(),
      why: await caller.locator('.why').textContent(),
      bytes: (await caller.getByRole('region').locator('pre').textContent()) ?? '',
    },
    operator: await operator.textContent(),
    /** The name of the step that failed. */
    failedStep: await failed
      ?.locator('.step-name')
      .evaluate((name) => name.firstChild?.textContent),
  }
}
