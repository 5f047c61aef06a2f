/* SPDX-License-Identifier: MIT */
/*
 * objects.c - objects that a policy makes, and its trees of them: bpf_obj_new(),
 * bpf_obj_drop() and bpf_rbtree_*().
 *
 * An object comes from the host's memory, as a policy's cpumask does. All of them are
 * in one list: what a policy leaves in a map or a tree is freed when it is unloaded.
 *
 * A tree is a list in order, searched from its end: what policies keep in one, by virtual
 * time, comes near the end nearly always. As on Linux equal nodes stay in the
 * order in which they came, and the policy's lock (private(), beside the root) is the
 * caller's to hold.
 *
 * Read next: cpumask.c.
 */
#include "../core/core.h"

struct sl_object {
	struct sl_object *next;
	struct sl_object *prev;
	u64 bytes;  /* with this header */
	u64 unused; /* so that what follows is aligned to 16 bytes */
};

/* Return: zeroed; NULL: no memory. */
void *sl_obj_new(u64 bytes)
{
	struct sl_object *o = alloc_for_policy(sizeof(*o) + bytes);

	if (!o)
		return NULL;
	o->bytes = sizeof(*o) + bytes;
	sl_lock(&sl_bpf.objects_lock);
	o->next = sl_bpf.objects;
	if (o->next)
		o->next->prev = o;
	sl_bpf.objects = o;
	sl_unlock(&sl_bpf.objects_lock);
	return o + 1;
}

void sl_obj_drop(void *object)
{
	struct sl_object *o = (struct sl_object *)object - 1;

	if (!object)
		return;
	sl_lock(&sl_bpf.objects_lock);
	if (o->next)
		o->next->prev = o->prev;
	*(o->prev ? &o->prev->next : &sl_bpf.objects) = o->next;
	sl_unlock(&sl_bpf.objects_lock);
	sl_host_free(o, o->bytes);
}

/* Context: nothing of the policy is in use. */
static void objects_free(void)
{
	while (sl_bpf.objects)
		sl_obj_drop(sl_bpf.objects + 1);
}

/* Return: 0, or -EINVAL: @node is in a tree. */
int bpf_rbtree_add(struct bpf_rb_root *root, struct bpf_rb_node *node,
		   bool (*less)(struct bpf_rb_node *a, const struct bpf_rb_node *b))
{
	struct bpf_rb_node *after = root->last;

	if (node->root)
		return -EINVAL;
	while (after && less(node, after))
		after = after->prev;
	node->root = root;
	node->prev = after;
	node->next = after ? after->next : root->first;
	*(after ? &after->next : &root->first) = node;
	*(node->next ? &node->next->prev : &root->last) = node;
	return 0;
}

/* Return: @node, which is now the caller's; NULL: it is not in this tree. */
struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node)
{
	if (node->root != root)
		return NULL;
	*(node->prev ? &node->prev->next : &root->first) = node->next;
	*(node->next ? &node->next->prev : &root->last) = node->prev;
	*node = (struct bpf_rb_node){ 0 };
	return node;
}

struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root)
{
	return root->first;
}
